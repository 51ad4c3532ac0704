"""Give a running daemon another configuration, and wait for what it makes of it."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from support.real_daemon import LLAMA_SWAP, Daemon
from support.real_daemon_talk import until

WATCHING = (*LLAMA_SWAP, "--watch-config")


def write(folder: Path, config: Mapping[str, Any] | str) -> None:
    """Write a daemon's configuration."""
    text = config if isinstance(config, str) else json.dumps(config)
    new = folder / "config.yaml.new"
    new.write_text(text)
    new.replace(folder / "config.yaml")


def reload(
    daemon: Daemon,
    folder: Path,
    config: Mapping[str, Any] | str,
    *,
    told: str = "service.reloaded",
    by: int = signal.SIGHUP,
) -> None:
    """Write a configuration, send a signal if `by` is one, and wait until the log tells of the outcome."""
    before = daemon.output().count(told)
    write(folder, config)
    if by:
        daemon.process.send_signal(by)
    until(lambda: daemon.output().count(told) > before, told)


def changed(config: Mapping[str, Any], model: str, **keys: Any) -> dict[str, Any]:
    """A configuration with other values for keys of one model; `words` are added to its command."""
    new: dict[str, Any] = deepcopy(dict(config))
    server = new["models"][model]
    words = keys.pop("words", "")
    new["models"][model] = {**server, "cmd": f"{server['cmd']} {words}", **keys}
    return new
