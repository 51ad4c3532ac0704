"""`/api/performance`: the last hour of the machine."""

from __future__ import annotations

from typing import Any

from llamaswap.calls.forms import query_field
from llamaswap.errors import BadRequest
from llamaswap.http1.exchange import Exchange
from llamaswap.telemetry.gpu import GpuSample
from llamaswap.telemetry.host import HostSample
from llamaswap.telemetry.sampler import Sampler
from llamaswap.telemetry.stamps import BadMoment, read_moment, write_moment
from llamaswap.web.answers import JSON, answer_json, json_bytes

JsonObject = dict[str, Any]


def show_performance(exchange: Exchange, sampler: Sampler | None) -> None:
    """Answer `GET /api/performance`, of which the query may ask only for what came `after` a moment.

    Args:
        sampler: None where sampling is switched off.

    Raises:
        BadRequest: that is no moment.
    """
    if sampler is None:
        exchange.respond(503, json_bytes({"enabled": False}), headers=(JSON,))
    else:
        answer_json(exchange, performance(sampler, _after(exchange)))


def performance(sampler: Sampler, after_us: int | None) -> JsonObject:
    """Return the answer: without a moment, empty lists are null."""
    samples = [(write_moment(sample.at_us), sample) for sample in sampler.history(after_us)]
    hosts = [_host(at, sample.host) for at, sample in samples if sample.host is not None]
    gpus = [_gpu(at, gpu) for at, sample in samples for gpu in sample.gpus]
    whole = after_us is None
    return {
        "enabled": True,
        "sys_stats": None if whole and not hosts else hosts,
        "gpu_stats": None if whole and not gpus else gpus,
    }


def _after(exchange: Exchange) -> int | None:
    text = query_field(exchange.head.query, "after")
    if not text:
        return None
    try:
        return read_moment(text)
    except BadMoment as mistake:
        raise BadRequest("invalid 'after' timestamp, use RFC3339 format") from mistake


def _host(at: str, host: HostSample) -> JsonObject:
    traffic = host.traffic
    return {
        "timestamp": at,
        "cpu_util_per_core": list(host.cpu_percent),
        "mem_total_mb": host.memory_total_mib,
        "mem_used_mb": host.memory_used_mib,
        "mem_free_mb": host.memory_free_mib,
        "swap_total_mb": host.swap_total_mib,
        "swap_used_mb": host.swap_used_mib,
        "load_avg_1": host.load[0],
        "load_avg_5": host.load[1],
        "load_avg_15": host.load[2],
        "net_io": None
        if traffic is None
        else [
            {"name": one.name, "bytes_recv": one.received_bytes, "bytes_sent": one.sent_bytes}
            for one in traffic
        ],
    }


def _gpu(at: str, gpu: GpuSample) -> JsonObject:
    """What the driver does not tell is null, which draws no point; a zero would draw one."""
    return {
        "timestamp": at,
        "id": gpu.id,
        "name": gpu.name,
        "uuid": gpu.uuid,
        "temp_c": gpu.celsius,
        "vram_temp_c": gpu.memory_celsius,
        "gpu_util_pct": gpu.busy_percent,
        "mem_util_pct": gpu.memory_percent,
        "mem_used_mb": gpu.memory_used_mib,
        "mem_total_mb": gpu.memory_total_mib,
        "fan_speed_pct": gpu.fan_percent,
        "power_draw_w": gpu.power_watts,
    }
