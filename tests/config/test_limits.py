"""The section `limits`."""

from __future__ import annotations

import pytest

from llamaswap.config.model import LimitsConfig
from support.config_checks import loaded, rejected, warnings_of


@pytest.mark.parametrize("text", ["", "limits:", "limits: {}", "limits: {waiting: ~, requestBody: ~}"])
def test_what_is_not_said_is_the_default(text: str) -> None:
    assert loaded(text).limits == LimitsConfig()


def test_every_key_is_read() -> None:
    text = (
        "limits: {connections: 500, waiting: 100, requestBody: 64MiB, heldBodies: 1GiB, slowClient: 65536,"
        " readers: 10}"
    )

    assert loaded(text).limits == LimitsConfig(
        connections=500,
        waiting=100,
        request_body=64 << 20,
        held_bodies=1 << 30,
        slow_client=65536,
        readers=10,
    )


def test_zero_stays_zero() -> None:
    text = "limits: {connections: 0, waiting: 0, requestBody: 0, heldBodies: 0, slowClient: 0, readers: 0}"

    assert loaded(text).limits == LimitsConfig(
        waiting=0, request_body=0, held_bodies=0, slow_client=0, readers=0
    )
    assert warnings_of(text) == []


def test_what_cannot_be_is_named_with_its_place() -> None:
    text = "limits: {waiting: -1, requestBody: much, slowClient: 1KiB, readers: [1]}"

    assert rejected(text) == [
        "1:19: limits.waiting: expected a number from 0, got -1",
        "1:36: limits.requestBody: expected bytes like 1048576 or a size like 64MiB, got 'much'",
        "1:54: limits.slowClient: expected at least 64KiB, or 0 for no limit, got 1024",
        "1:69: limits.readers: expected a whole number, got a list",
    ]


@pytest.mark.parametrize("body", ["2MiB", "0"])
def test_a_body_that_could_be_larger_than_all_together_is_a_doubt(body: str) -> None:
    assert warnings_of(f"limits: {{requestBody: {body}, heldBodies: 1MiB}}") == [
        "1:23: limits.requestBody: larger than heldBodies, so that one counts for each body, too"
    ]
    assert warnings_of("limits: {heldBodies: 1MiB}") == []


def test_an_unknown_key_is_warned_about() -> None:
    assert warnings_of("limits: {waitng: 5}") == ["1:10: limits.waitng: unknown key; did you mean 'waiting'?"]
