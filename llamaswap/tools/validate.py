"""Everything that can be said about a configuration before it is used, one line each.

Knows how findings read; the loader finds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from llamaswap.config.load import load
from llamaswap.config.mistakes import ConfigRejected
from llamaswap.config.model import Config


@dataclass(frozen=True, slots=True)
class Findings:
    """The lines begin with file:line:column, so that an editor can jump there."""

    mistakes: tuple[str, ...]  # any of them keeps the daemon from using the configuration
    warnings: tuple[str, ...]
    summary: str

    @property
    def usable(self) -> bool:
        return not self.mistakes

    def text(self) -> str:
        """Return all lines, the summary last."""
        warned = (f"{warning} (warning)" for warning in self.warnings)
        return "".join(f"{line}\n" for line in (*self.mistakes, *warned, self.summary))


def validate(config: Path | None, config_dir: Path | None, environ: Mapping[str, str]) -> Findings:
    """Load a configuration as the daemon would, and tell what was found."""
    try:
        loaded = load(config, config_dir, environ)
    except ConfigRejected as rejected:
        count = len(rejected.mistakes)
        summary = f"can't be used: {_counted(count, 'mistake')}"
        return Findings(tuple(map(str, rejected.mistakes)), rejected.warnings, summary)
    return Findings((), loaded.warnings, _summary(loaded))


def _summary(config: Config) -> str:
    warned = f", {_counted(len(config.warnings), 'warning')}" if config.warnings else ""
    models = _counted(len(config.models), "model")
    return f"good: {models}, {config.router} router, {config.scheduler.use} scheduler{warned}"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
