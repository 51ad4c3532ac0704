"""The values themselves."""

from __future__ import annotations

import dataclasses

import pytest

from llamaswap.config.model import Config, ModelConfig


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().start_port = 1  # type: ignore[misc]  # that is the point
    with pytest.raises(TypeError):
        Config().models["a"] = ModelConfig(id="a")  # type: ignore[index]  # that too


def test_equal_texts_make_equal_configurations() -> None:
    assert Config() == Config()
    assert ModelConfig(id="a") != ModelConfig(id="b")
