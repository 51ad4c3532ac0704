"""Which changes of a model restart its child."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from llamaswap.config.launch import fingerprints, same_process
from llamaswap.config.model import ModelConfig

MODEL = ModelConfig(
    id="m", argv=("serve", "--port", "5800"), env=("KEY=secret",), proxy="http://127.0.0.1:5800"
)


@pytest.mark.parametrize(
    ("key", "changes"),
    [
        ("cmd", {"argv": ("serve", "--port", "5801")}),
        ("env", {"env": ("KEY=other",)}),
        ("proxy", {"proxy": "http://127.0.0.1:5801"}),
        ("checkEndpoint", {"check_endpoint": "/ready"}),
        ("cmdStop", {"cmd_stop": "stop it"}),
    ],
)
def test_a_change_that_a_running_child_cannot_follow_shows_in_its_own_digest(
    key: str, changes: dict[str, Any]
) -> None:
    other = replace(MODEL, **changes)

    assert not same_process(MODEL, other)
    before, after = fingerprints(MODEL), fingerprints(other)
    assert [name for name in before if before[name] != after[name]] == [key]


@pytest.mark.parametrize(
    "changes",
    [
        {"ttl": 60},
        {"aliases": ("n",)},
        {"name": "M"},
        {"concurrency_limit": 3},
        {"unlisted": True},
        {"protected": True},
    ],
)
def test_anything_else_leaves_the_child_alone(changes: dict[str, Any]) -> None:
    other = replace(MODEL, **changes)

    assert same_process(MODEL, other)
    assert fingerprints(MODEL) == fingerprints(other)


def test_a_digest_does_not_tell_what_it_digests() -> None:
    assert "secret" not in str(fingerprints(MODEL))
