"""The recorded facts about configurations, and how a `Config` of ours is held against one."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from llamaswap.config.model import Config, Filters, GroupConfig, ModelConfig, PeerConfig, Timeouts

CORPUS = Path(__file__).parents[1] / "conformance" / "config.jsonl"

Case = dict[str, Any]


def read_corpus() -> tuple[Case, ...]:
    """Every recorded case, in the file's order."""
    with CORPUS.open(encoding="utf-8") as lines:
        return tuple(json.loads(line) for line in lines)


def lay_out(case: Case, folder: Path) -> None:
    """Write a case's files and links into an empty folder."""
    for name, text in (case.get("files") or {}).items():
        path = folder / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8"))
    for name, target in (case.get("links") or {}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)


def accepted(case: Case) -> list[dict[str, Any]]:
    """What passes: the recorded behaviour, or one of the better ones."""
    return [case["expect"], *case.get("better", [])]


def differences(want: Any, have: Any, where: str = "") -> Iterator[str]:
    """Where a value of ours is not the recorded one; nothing when they agree."""
    want = _unwrapped(want)
    if isinstance(want, dict) and isinstance(have, dict):
        for key in sorted(want.keys() | have.keys()):
            yield from differences(want.get(key), have.get(key), f"{where}.{key}")
    elif isinstance(want, list) and isinstance(have, list) and len(want) == len(have):
        for number, (one, other) in enumerate(zip(want, have, strict=True)):
            yield from differences(one, other, f"{where}[{number}]")
    elif not _same(want, have):
        yield f"{where}: recorded {want!r}, ours {have!r}"


def shown(config: Config) -> dict[str, Any]:
    """A `Config` in the shape of the corpus."""
    return {
        "globals": _globals(config),
        "models": {name: _model(model) for name, model in config.models.items()},
        "names": dict(config.names),
        "router": config.router,
        "scheduler": str(config.scheduler.use),
        "priority": dict(config.scheduler.fifo_priority),
        "groups": {group.id: _group(group) for group in config.groups} if config.router == "group" else None,
        "matrix": None
        if config.matrix is None
        else {
            "vars": dict(config.matrix.vars),
            "costs": dict(config.matrix.costs),
            "sets": [list(one) for one in config.matrix.sets],
        },
        "peers": {name: _peer(peer) for name, peer in config.peers.items()},
        "selectors": {
            one.id: {
                "strategy": one.strategy,
                "targets": list(one.targets),
                "spillover": one.spillover,
                "name": one.name,
                "description": one.description,
                "unlisted": one.unlisted,
                "metadata": dict(one.metadata),
            }
            for one in config.selectors.values()
        },
        "profiles": {
            one.id: {"description": one.description, "pins": dict(one.pins)}
            for one in config.profiles.values()
        },
    }


def _globals(config: Config) -> dict[str, Any]:
    return {
        "apiKeys": list(config.api_keys),
        "captureBuffer": config.capture_buffer,
        "globalTTL": config.global_ttl,
        "healthCheckTimeout": config.health_check_timeout,
        "ignorePaths": list(config.ignore_paths),
        "includeAliasesInList": config.include_aliases_in_list,
        "logLevel": config.log_level,
        "logRequests": config.log_requests,
        "logTimeFormat": config.log_time_format,
        "logToStdout": config.log_to_stdout,
        "metricsMaxInMemory": config.metrics_max_in_memory,
        "performance": {"disabled": config.performance.disabled, "every_ms": config.performance.every_ms},
        "preload": list(config.preload),
        "sendLoadingState": config.send_loading_state,
        "sessionHeaders": list(config.session_headers),
        "startPort": config.start_port,
        "store": config.store_path,
        "unloadTimeout": config.unload_timeout,
    }


def _model(model: ModelConfig) -> dict[str, Any]:
    return {
        "cmd": model.cmd,
        "argv": list(model.argv) or None,
        "cmdStop": model.cmd_stop,
        "proxy": model.proxy,
        "checkEndpoint": model.check_endpoint,
        "aliases": list(model.aliases),
        "env": list(model.env),
        "ttl": model.ttl,
        "unloadTimeout": model.unload_timeout,
        "healthCheckTimeout": model.health_check_timeout,
        "unlisted": model.unlisted,
        "useModelName": model.use_model_name,
        "name": model.name,
        "description": model.description,
        "concurrencyLimit": model.concurrency_limit,
        "filters": _filters(model.filters),
        "metadata": dict(model.metadata),
        "sendLoadingState": model.send_loading_state,
        "timeouts": _timeouts(model.timeouts),
        "ignoreWebsockets": model.ignore_websockets,
        "capabilities": {
            "in": list(model.capabilities.inputs),
            "out": list(model.capabilities.outputs),
            "tools": model.capabilities.tools,
            "reranker": model.capabilities.reranker,
            "context": model.capabilities.context,
        },
    }


def _filters(filters: Filters) -> dict[str, Any]:
    return {
        "strip": list(filters.strip),
        "set": dict(filters.set),
        "set_by_id": {name: dict(chosen) for name, chosen in filters.set_by_id.items()},
    }


def _timeouts(timeouts: Timeouts) -> dict[str, int]:
    return {
        "connect": timeouts.connect,
        "keepalive": timeouts.keepalive,
        "responseHeader": timeouts.response_header,
        "tlsHandshake": timeouts.tls_handshake,
        "expectContinue": timeouts.expect_continue,
        "idleConn": timeouts.idle_conn,
    }


def _group(group: GroupConfig) -> dict[str, Any]:
    return {
        "swap": group.swap,
        "exclusive": group.exclusive,
        "persistent": group.persistent,
        "members": list(group.members),
    }


def _peer(peer: PeerConfig) -> dict[str, Any]:
    return {
        "proxy": peer.proxy,
        "apiKey": peer.api_key,
        "models": list(peer.models),
        "filters": _filters(peer.filters),
        "timeouts": _timeouts(peer.timeouts),
    }


def _unwrapped(want: Any) -> Any:
    """The corpus' escapes: odd floats, times (texts here), maps whose keys are no texts."""
    if not isinstance(want, Mapping):
        return want
    if want.keys() == {"$float"}:
        return float(want["$float"])
    if want.keys() == {"$time"}:
        return want["$time"]
    if want.keys() == {"$map"}:
        return {key if isinstance(key, str) else json.dumps(key): value for key, value in want["$map"]}
    return dict(want)


def _same(want: Any, have: Any) -> bool:
    if isinstance(want, bool) != isinstance(have, bool):
        return False
    if isinstance(want, float) and math.isnan(want):
        return isinstance(have, float) and math.isnan(have)
    return bool(want == have)
