"""What `make run` says before the daemon does."""

from __future__ import annotations

import pytest

from bench.hello import reachable


@pytest.mark.parametrize(
    ("listen", "asked"),
    [
        ("127.0.0.1:8080", "127.0.0.1:8080"),
        ("box.example:80", "box.example:80"),
        ("[::1]:8080", "[::1]:8080"),
        (":8081", "127.0.0.1:8081"),
        ("0.0.0.0:8081", "127.0.0.1:8081"),
        ("[::]:8081", "127.0.0.1:8081"),
    ],
)
def test_the_commands_that_it_offers_can_be_typed(listen: str, asked: str) -> None:
    assert reachable(listen) == asked
