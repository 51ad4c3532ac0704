"""What the planners answer, held against the recorded answers of the reference implementation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from llamaswap.config.load import load
from llamaswap.scheduling.registry import make_planner
from support.config_corpus import Case, accepted, lay_out, read_corpus

EVICTIONS = [case for case in read_corpus() if case["kind"] == "evict"]


def test_every_recorded_question_is_asked() -> None:
    assert len(EVICTIONS) == 154
    assert sum(len(case["input"]["queries"]) for case in EVICTIONS) == 1300


@pytest.mark.parametrize("case", EVICTIONS, ids=lambda case: case["id"])
def test_the_planner_stops_what_was_recorded(case: Case, tmp_path: Path) -> None:
    lay_out(case, tmp_path)
    make_room = make_planner(load(tmp_path / "config.yaml", None, case.get("env") or {}))

    stopped = [sorted(make_room(*_question(query))) for query in case["input"]["queries"]]

    assert stopped in [want["stop"] for want in accepted(case)]


def _question(query: dict[str, Any]) -> tuple[str, frozenset[str]]:
    return query["target"], frozenset(query["running"])
