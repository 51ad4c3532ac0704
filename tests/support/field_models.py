"""What a case from the field runs against: models on our own stub, and their configuration."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.field_ports import free_ports

STUB = (sys.executable, "-m", "llamaswap.stub")


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model of a configuration.

    Attributes:
        words: switches of its stub; `{folder}` is the test's folder.
        wrap: a template for its command, for shells around it; `{}` is the stub.
        keys: more keys of its entry.  `cmd` replaces the command; `{stub}` in it is the stub, with its words.
        vram: whether it takes the lock that no two may hold.
    """

    words: str = ""
    wrap: str = "{}"
    keys: Mapping[str, Any] = field(default_factory=dict)
    vram: bool = True


def stub(words: str = "", *, wrap: str = "{}", vram: bool = True, **keys: Any) -> Model:
    """A model on the stub, with switches for the stub and keys for its entry."""
    return Model(words=words, wrap=wrap, keys=keys, vram=vram)


def configuration(folder: Path, models: Mapping[str, Model], more: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of these models; JSON is YAML.

    Without groups any model evicts any other: they are in one exclusive set.

    Args:
        more: further keys, each instead of the usual one.
    """
    usual = {
        "startPort": free_ports(len(models)),
        "healthCheckTimeout": 30,
        "metricsMaxInMemory": 5000,
        "models": {name: _entry(folder, name, model) for name, model in models.items()},
        "routing": {"scheduler": {"use": "serial"}},
    }
    return {**usual, **more}


def _entry(folder: Path, name: str, model: Model) -> dict[str, Any]:
    lock = ["--vram", str(folder / "vram"), "1G"] if model.vram else []
    start = [*STUB, "--port", "${PORT}", "--alias", name, "--record", str(folder / "record"), *lock]
    # ${PORT} is replaced before the words are split, so that quotes around it do no harm.
    command = f"{shlex.join(start)} {model.words.replace('{folder}', str(folder))}".strip()
    keys = dict(model.keys)
    given = keys.pop("cmd", None)
    cmd = model.wrap.replace("{}", command) if given is None else given.replace("{stub}", command)
    return {"cmd": cmd, "proxy": "http://127.0.0.1:${PORT}", **keys}
