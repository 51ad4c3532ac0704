"""A configuration as one JSON document: what is in effect once everything is applied.

The keys are the file's own, and every one is there.  Secrets are in it, too, though not a second
time with the callers that they belong to.  The shape is the one that
`tests/conformance/config.md` describes; what llama-swap doesn't know is only there when it is in
use.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from llamaswap.config.model import (
    Config,
    Filters,
    GroupConfig,
    KeepAliveConfig,
    LimitsConfig,
    MatrixConfig,
    ModelConfig,
    PeerConfig,
    PrioritiesConfig,
    SchedulerName,
    SelectorConfig,
    SerialSettings,
    Timeouts,
)
from llamaswap.config.nodes import OddKeys, Timestamp

HIDDEN = "***"
"""Stands for a caller's key."""


def dump(config: Config) -> str:
    """Return the JSON text, indented, with a line end."""
    return json.dumps(effective(config), indent=2, allow_nan=False) + "\n"


def effective(config: Config) -> dict[str, Any]:
    """Return the document as dicts, lists, texts, numbers and None."""
    shown = {
        "globals": _globals(config),
        "models": {name: model_settings(model) for name, model in config.models.items()},
        "names": dict(config.names),
        "router": config.router,
        "scheduler": str(config.scheduler.use),
        "priority": dict(config.scheduler.fifo_priority),
        "groups": {one.id: _group(one) for one in config.groups} if config.router == "group" else None,
        "matrix": None if config.matrix is None else _matrix(config.matrix),
        "peers": {name: _peer(peer) for name, peer in config.peers.items()},
        "selectors": {name: _selector(selector) for name, selector in config.selectors.items()},
        "profiles": {
            name: {"description": one.description, "pins": dict(one.pins)}
            for name, one in config.profiles.items()
        },
    }
    if config.scheduler.use is SchedulerName.SERIAL:
        shown["serial"] = _serial(config.scheduler.serial)
    if config.limits != LimitsConfig():
        shown["limits"] = _limits(config.limits)
    if config.keep_alive != KeepAliveConfig():
        shown["keepAlive"] = {"stream": config.keep_alive.stream, "json": config.keep_alive.json}
    if config.priorities != PrioritiesConfig():
        shown["priorities"] = _priorities(config.priorities)
    return shown


def model_settings(model: ModelConfig) -> dict[str, Any]:
    """Return one model's part of the document."""
    shown = {
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
        "metadata": free_form(model.metadata),
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
    if model.drain_on_disconnect:
        shown["drainOnDisconnect"] = True
    if model.protected:
        shown["protected"] = True
    return shown


def free_form(value: Any) -> Any:
    """Return what a user wrote as JSON allows it.

    Infinities and NaN become `{"$float": ...}`, dates `{"$time": ...}`, mappings
    with keys that are no text `{"$map": [[key, value], ...]}`.
    """
    if isinstance(value, OddKeys):
        pairs = [[free_form(key), free_form(one)] for key, one in value.written]
        return {"$map": sorted(pairs, key=lambda pair: json.dumps(pair[0]))}
    if isinstance(value, Timestamp):
        return {"$time": str(value)}
    if isinstance(value, Mapping):
        return {str(key): free_form(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [free_form(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": str(value)}
    return value


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


def _serial(serial: SerialSettings) -> dict[str, Any]:
    """The two settings that are always there, and the others if they say something."""
    more = {
        "swapBudgetSeconds": serial.swap_budget,
        "width": dict(serial.width),
        "maxWait": dict(serial.max_wait),
        "maxQueue": dict(serial.max_queue),
    }
    return {
        "agingDivisor": serial.aging_divisor,
        "swapAffinityBonus": serial.swap_affinity_bonus,
        **{key: value for key, value in more.items() if value},
    }


def _priorities(priorities: PrioritiesConfig) -> dict[str, Any]:
    callers = [
        {
            "name": one.name,
            "keys": [HIDDEN] * len(one.keys),
            "defaultPriority": one.default_priority,
            "maxPriority": one.max_priority,
            "offset": one.offset,
        }
        for one in priorities.callers
    ]
    return {"callers": callers, "models": dict(priorities.models)}


def _limits(limits: LimitsConfig) -> dict[str, int | None]:
    return {
        "connections": limits.connections,
        "waiting": limits.waiting,
        "requestBody": limits.request_body,
        "heldBodies": limits.held_bodies,
        "slowClient": limits.slow_client,
        "readers": limits.readers,
    }


def _filters(filters: Filters) -> dict[str, Any]:
    return {
        "strip": list(filters.strip),
        "set": free_form(filters.set),
        "set_by_id": free_form(filters.set_by_id),
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


def _matrix(matrix: MatrixConfig) -> dict[str, Any]:
    return {
        "vars": dict(matrix.vars),
        "costs": dict(matrix.costs),
        "sets": [list(one) for one in matrix.sets],
    }


def _peer(peer: PeerConfig) -> dict[str, Any]:
    return {
        "proxy": peer.proxy,
        "apiKey": peer.api_key,
        "models": list(peer.models),
        "filters": _filters(peer.filters),
        "timeouts": _timeouts(peer.timeouts),
    }


def _selector(selector: SelectorConfig) -> dict[str, Any]:
    return {
        "strategy": selector.strategy,
        "targets": list(selector.targets),
        "spillover": selector.spillover,
        "name": selector.name,
        "description": selector.description,
        "unlisted": selector.unlisted,
        "metadata": free_form(selector.metadata),
    }
