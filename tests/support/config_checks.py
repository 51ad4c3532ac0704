"""Short ways to load a configuration text in a test."""

from __future__ import annotations

import textwrap

import pytest

from llamaswap.config.load import ConfigRejected, load_text
from llamaswap.config.mistakes import Report
from llamaswap.config.model import Config, ModelConfig

TWO_MODELS = 'models: {a: {cmd: s, proxy: "http://h:1"}, b: {cmd: s, proxy: "http://h:2", aliases: [bee]}}'


def loaded(text: str, **environ: str) -> Config:
    """The configuration that an indented text stands for."""
    return load_text(textwrap.dedent(text), environ=environ)


def model_of(settings: str, *before: str) -> ModelConfig:
    """A model `m` with these settings (a flow mapping's inside) besides cmd and proxy."""
    text = f"models: {{m: {{cmd: s, proxy: 'http://h:1', {settings}}}}}"
    return loaded("\n".join((*before, text))).models["m"]


def rejected(text: str, **environ: str) -> list[str]:
    """What is wrong with a text: one line per mistake, without the file's name."""
    with pytest.raises(ConfigRejected) as refusal:
        loaded(text, **environ)
    return [str(mistake).removeprefix("config.yaml:") for mistake in refusal.value.mistakes]


def warnings_of(text: str) -> list[str]:
    """What a text is warned about, without the file's name."""
    return [warning.removeprefix("config.yaml:") for warning in loaded(text).warnings]


def lines(report: Report) -> list[str]:
    """What a report holds, for tests of a single step."""
    return [str(mistake) for mistake in report.mistakes]
