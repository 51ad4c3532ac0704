"""What of a model decides how its child is started: a change of anything else needs no restart."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from llamaswap.config.model import ModelConfig


def launch_of(model: ModelConfig) -> Mapping[str, object]:
    """Return the settings that a running child can't follow, under their names in the file."""
    return {
        "cmd": model.argv,
        "cmdStop": model.cmd_stop,
        "env": model.env,
        "proxy": model.proxy,
        "checkEndpoint": model.check_endpoint,
    }


def same_process(one: ModelConfig, other: ModelConfig) -> bool:
    """Return whether a child of one model would do for the other."""
    return launch_of(one) == launch_of(other)


def fingerprints(model: ModelConfig) -> dict[str, str]:
    """Return a digest of each of these settings: comparable, and telling nothing of what is in them."""
    return {name: _digest(value) for name, value in launch_of(model).items()}


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:32]
