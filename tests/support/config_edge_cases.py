"""The rows of the table of edge cases, how they are played, and short ways to write them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from llamaswap.config.command import split_command
from llamaswap.config.load import ConfigRejected, load, load_text
from llamaswap.scheduling.registry import make_planner
from llamaswap.tools.dump import effective

Values: TypeAlias = Mapping[str, Any]
"""Path in the dump to value; no name here has a dot."""

REJECTED: Values = {}


@dataclass(frozen=True, slots=True)
class Row:
    """One configuration and what comes of it."""

    number: str
    says: str
    text: str | Mapping[str, str]  # the file, or the files of a directory
    comes: Values
    env: Mapping[str, str] = field(default_factory=dict)

    def play(self, folder: Path) -> None:
        """Load it; the folder is empty."""
        if self.comes is REJECTED:
            with pytest.raises(ConfigRejected):
                self._dumped(folder)
        else:
            dumped = self._dumped(folder)
            assert {path: _at(dumped, path) for path in self.comes} == self.comes

    def _dumped(self, folder: Path) -> dict[str, Any]:
        if isinstance(self.text, str):
            return effective(load_text(self.text, environ=self.env))
        for name, text in self.text.items():
            (folder / name).write_text(text, encoding="utf-8")
        return effective(load(None, folder, self.env))


@dataclass(frozen=True, slots=True)
class Command:
    """A command's text and its words."""

    number: str
    says: str
    text: str
    words: list[str]

    def play(self, folder: Path) -> None:
        """Split it."""
        assert list(split_command(self.text)) == self.words


@dataclass(frozen=True, slots=True)
class Question:
    """What must stop, as single letters, before a model may run."""

    number: str
    says: str
    text: str
    target: str
    running: str
    stop: str

    def play(self, folder: Path) -> None:
        """Ask the planner."""
        make_room = make_planner(load_text(self.text))
        assert "".join(sorted(make_room(self.target, frozenset(self.running)))) == self.stop


def m(settings: str, before: str = "") -> str:
    """One model `m` with a command, a URL and these settings."""
    return f"{before}\nmodels: {{m: {{cmd: s, proxy: 'http://h', {settings}}}}}"


def models(names: str, after: str = "") -> str:
    """Models with single letters for ids."""
    entries = ", ".join(f"{name}: {{cmd: s, proxy: 'http://h'}}" for name in names)
    return f"models: {{{entries}}}\n{after}"


def cmd(text: str, macros: str = "", own: str = "") -> str:
    """A model `m` with this command, under these macros and its own ones."""
    return f"macros: {{{macros}}}\nmodels: {{m: {{cmd: {text!r}, proxy: 'http://h', macros: {{{own}}}}}}}"


def peer(name: str, *models: str) -> str:
    """A peer and what it offers, as an entry in braces."""
    return f"{name}: {{proxy: 'http://p', models: [{', '.join(models)}]}}"


def _at(dumped: Any, path: str) -> Any:
    for key in path.split("."):
        dumped = dumped[key]
    return dumped
