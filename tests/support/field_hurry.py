"""A daemon whose long times are short: what a case waits for by its nature, an ordinary run does not.

In a soak the daemon runs as it is.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from support.field_scale import Scale
from support.real_daemon import LLAMA_SWAP

SHORTEST_HEALTH_CHECK = "llamaswap.config.settings.SHORTEST_HEALTH_CHECK"

_PROGRAM = """
import importlib, json, sys

for name, value in json.loads(sys.argv.pop(1)).items():
    module = importlib.import_module(name.rpartition(".")[0])
    constant = name.rpartition(".")[2]
    assert hasattr(module, constant), name
    setattr(module, constant, value)

from llamaswap.cli import main

main()
"""


def in_a_hurry(scale: Scale, constants: dict[str, Any]) -> tuple[str, ...]:
    """The words that run the daemon with other constants, by their full names; as it is in a soak."""
    if scale.soak:
        return LLAMA_SWAP
    return (sys.executable, "-c", _PROGRAM, json.dumps(constants))


def with_health_checks(scale: Scale, seconds: int, **config: Any) -> dict[str, Any]:
    """Arguments of a field whose loads may take so many seconds, and in a soak the least that there is."""
    limit = 15 if scale.soak else seconds
    return {
        "config": {"healthCheckTimeout": limit, **config},
        "command": in_a_hurry(scale, {SHORTEST_HEALTH_CHECK: 1}),
    }


def all_together(models: Iterable[str]) -> dict[str, Any]:
    """The keys of a configuration whose models run side by side, as many requests at once as come."""
    return {
        "groups": {"all": {"swap": False, "members": sorted(models)}},
        "routing": {"scheduler": {"use": "fifo"}},
    }
