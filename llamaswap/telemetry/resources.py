"""The machine's part of `/metrics`, with llama-swap's names and labels.

Knows how a sample is printed; not how it came about.  Where nothing fresh is known, nothing is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from llamaswap.telemetry.gpu import GpuSample
from llamaswap.telemetry.host import HostSample, Traffic
from llamaswap.telemetry.sampler import Sample

MIB: Final = 1024 * 1024


class Resources(Collector):
    """Prints the latest sample; register it with the service's registry.

    Args:
        latest: None until there is one, and when the last one is too old.
    """

    def __init__(self, latest: Callable[[], Sample | None]) -> None:
        self._latest = latest

    @override
    def collect(self) -> Iterable[Metric]:
        sample = self._latest()
        if sample is None:
            return
        if sample.host is not None:
            yield from _host(sample.host)
        if sample.gpus:
            yield from _gpus(sorted(sample.gpus, key=lambda gpu: gpu.id))


def _host(host: HostSample) -> Iterator[Metric]:
    cpu = GaugeMetricFamily(
        "llamaswap_cpu_util_percent", "How busy each logical processor was, 0 to 100.", labels=["core"]
    )
    for core, percent in enumerate(host.cpu_percent):
        cpu.add_metric([str(core)], percent)
    yield cpu
    sizes = (
        ("memory_total", "Memory of the machine.", host.memory_total_mib),
        ("memory_used", "Memory in use.", host.memory_used_mib),
        ("memory_free", "Memory that nothing uses, caches included in what is used.", host.memory_free_mib),
        ("swap_total", "Swap space.", host.swap_total_mib),
        ("swap_used", "Swap space in use.", host.swap_used_mib),
    )
    for name, words, mib in sizes:
        yield GaugeMetricFamily(f"llamaswap_{name}_bytes", words, value=mib * MIB)
    load = GaugeMetricFamily("llamaswap_load_average", "Load of the machine.", labels=["interval"])
    for interval, value in zip(("1m", "5m", "15m"), host.load, strict=True):
        load.add_metric([interval], value)
    yield load
    if host.traffic:
        yield _network(host.traffic)


def _network(traffic: Sequence[Traffic]) -> Metric:
    network = CounterMetricFamily(
        "llamaswap_network_bytes",
        "Bytes through each network interface.",
        labels=["interface", "direction"],
    )
    for interface in traffic:
        network.add_metric([interface.name, "recv"], interface.received_bytes)
        network.add_metric([interface.name, "sent"], interface.sent_bytes)
    return network


def _gpus(gpus: Sequence[GpuSample]) -> Iterator[Metric]:
    def family(name: str, words: str, value: Callable[[GpuSample], float | None]) -> Metric:
        metric = GaugeMetricFamily(f"llamaswap_gpu_{name}", words)
        for gpu in gpus:
            known = value(gpu)
            if known is not None:
                metric.add_sample(metric.name, _labels(gpu), known)
        return metric

    yield family("temperature_celsius", "Temperature of the processor.", lambda gpu: gpu.celsius)
    # The one value that is 0 where it is unknown: dashboards were built on that.
    yield family(
        "vram_temperature_celsius",
        "Temperature of its memory; 0 where that is unknown.",
        lambda gpu: gpu.memory_celsius or 0,
    )
    yield family("util_percent", "How busy it was, 0 to 100.", lambda gpu: gpu.busy_percent)
    yield family("memory_util_percent", "How full its memory is, 0 to 100.", lambda gpu: gpu.memory_percent)
    yield family("memory_used_bytes", "Memory in use.", lambda gpu: _bytes(gpu.memory_used_mib))
    yield family("memory_total_bytes", "Memory it has.", lambda gpu: _bytes(gpu.memory_total_mib))
    yield family("fan_speed_percent", "Speed of its fan, 0 to 100.", lambda gpu: gpu.fan_percent)
    yield family("power_draw_watts", "Power it draws.", lambda gpu: gpu.power_watts)


def _labels(gpu: GpuSample) -> dict[str, str]:
    labels = {"id": str(gpu.id), "name": gpu.name}
    if gpu.uuid:
        labels["uuid"] = gpu.uuid
    return labels


def _bytes(mib: int | None) -> int | None:
    return None if mib is None else mib * MIB
