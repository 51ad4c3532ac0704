"""What clients and upstreams of llama-swap saw, played against this program; `http.md` tells more.

All chosen cases are played side by side, on a few servers at once; a test looks up how its case went.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from conformance.player.corpus import OURS, RECORDED, Case, read_corpus
from conformance.player.crew import Result, play_all
from conformance.player.hatchery import Hatchery

pytestmark = pytest.mark.integration

JOBS = 3
"""Servers at once, on two cores: now and then, each case waits for something."""

LIMIT = 20.0
"""Seconds for a case without a limit of its own."""

COMMAND = "llama-swap -config {CONFIG} -listen {LISTEN}"

CORPUS = {case["id"]: case for path in (RECORDED, OURS) for case in read_corpus(path)}


class Playing:
    """Cases that are being played."""

    def __init__(self, results: Iterator[Result]) -> None:
        self._results = results
        self._known: dict[str, Result] = {}

    def result(self, case: str) -> Result:
        """How a case went; waits until it is known."""
        while case not in self._known:
            result = next(self._results)
            self._known[result.case] = result
        return self._known[case]


@pytest.fixture(scope="module")
def playing(request: pytest.FixtureRequest) -> Iterator[Playing]:
    """Every case of this session, on its way."""
    cases = _chosen(request.session.items)
    with (
        Hatchery() as hatchery,
        closing(play_all(COMMAND, cases, jobs=JOBS, limit=LIMIT, start=hatchery.start)) as results,
    ):
        yield Playing(results)


@pytest.mark.parametrize("case", CORPUS)
def test_a_transcript_is_what_was_recorded(case: str, playing: Playing) -> None:
    result = playing.result(case)

    assert not result.wrong, "\n".join(result.wrong)


def _chosen(items: Sequence[pytest.Item]) -> list[Case]:
    """The cases that are asked for: with `-k`, that need not be all."""
    names = {item.name.partition("[")[2].removesuffix("]") for item in items if item.path == Path(__file__)}
    return [case for name, case in CORPUS.items() if name in names]
