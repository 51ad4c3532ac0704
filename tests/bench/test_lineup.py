"""The order in which contestants are measured."""

from __future__ import annotations

from itertools import islice
from typing import cast

import pytest

from bench.contestants import Contestant
from bench.lineup import LineUp, upstream_port
from bench.native import Upstream

NOBODY = cast("Upstream", None)


def test_each_is_measured_once_a_round_and_another_one_begins_each_time() -> None:
    line = LineUp(NOBODY, [Contestant(name, 0) for name in "abc"])

    names = (contestant.name for contestant in line.rounds(4))

    assert ["".join(islice(names, 3)) for _ in range(4)] == ["abc", "bca", "cab", "abc"]
    assert list(names) == []


def test_peers_find_the_upstream_where_they_look_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BENCH_UPSTREAM_PORT", raising=False)
    monkeypatch.delenv("BENCH_PEER", raising=False)
    assert upstream_port() == 0

    monkeypatch.setenv("BENCH_PEER", "other=9000")
    assert upstream_port() == 19300

    monkeypatch.setenv("BENCH_UPSTREAM_PORT", "19400")
    assert upstream_port() == 19400
