"""The key `keepAlive`."""

from __future__ import annotations

import pytest

from llamaswap.config.model import KeepAliveConfig
from support.config_checks import loaded, rejected, warnings_of


@pytest.mark.parametrize(
    "text", ["", "keepAlive:", "keepAlive: 0", "keepAlive: 0s", "keepAlive: {}", "keepAlive: {stream: ~}"]
)
def test_nobody_gets_signs_of_life_unless_it_is_set(text: str) -> None:
    assert loaded(text).keep_alive == KeepAliveConfig()
    assert warnings_of(text) == []


@pytest.mark.parametrize("value", ["15s", "15", "15.0", "0.25m", "{stream: 15s}", "{stream: 15, json: 0}"])
def test_a_single_time_is_that_of_streams(value: str) -> None:
    assert loaded(f"keepAlive: {value}").keep_alive == KeepAliveConfig(stream=15.0)


def test_answers_of_both_kinds_have_their_own_time() -> None:
    text = "keepAlive: {stream: 1500ms, json: 1}"
    assert loaded(text).keep_alive == KeepAliveConfig(stream=1.5, json=1.0)


@pytest.mark.parametrize("value", ["soon", "-1", "-15s", "yes", "true", "[15s]", ".inf", "99999999999"])
def test_what_is_no_time_is_refused(value: str) -> None:
    (line,) = rejected(f"keepAlive: {value}")
    assert line.startswith("1:12: keepAlive: expected seconds from 0 or a duration like 30s, got ")


def test_a_time_is_never_so_short_that_there_is_nothing_but_signs_of_life() -> None:
    assert rejected("keepAlive: 999ms") == [
        "1:12: keepAlive: expected at least 1s, or 0 for none, got '999ms'"
    ]
    assert rejected("keepAlive: {stream: 15s, json: 0.5}") == [
        "1:32: keepAlive.json: expected at least 1s, or 0 for none, got 0.5"
    ]


def test_an_unknown_key_is_warned_about() -> None:
    assert warnings_of("keepAlive: {strem: 5}") == [
        "1:13: keepAlive.strem: unknown key; did you mean 'stream'?"
    ]
