"""How the queue looks as JSON where numbers are odd; the rest is told of the whole daemon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from llamaswap.queueing import Explained, QueuePage, TicketRow
from llamaswap.scheduling.explaining import Bound, Explanation, Terms
from llamaswap.scheduling.forecast import Eta
from llamaswap.scheduling.vocabulary import Band, BandView, Ticket
from llamaswap.telemetry.stamps import read_moment
from llamaswap.web.queue_json import MOST_MS, explained_json, page_json

NOON = 1_800_000_000.0
TERMS = Terms(priority=0, affinity=10, aging=1, score=10_001)


def a_row(**changes: Any) -> TicketRow:
    """One who waits."""
    usual: Mapping[str, Any] = {
        "ticket": Ticket(number=3, model="a", priority=0, arrived=0.0),
        "band": Band.NORMAL,
        "waited": 0.0619,
        "terms": TERMS,
        "position": 1,
        "swap": None,
        "budget": False,
        "paused": False,
        "max_wait": None,
        "eta": None,
    }
    return TicketRow(**{**usual, **changes})


def a_page(*rows: TicketRow, waiting: int = 0) -> QueuePage:
    """A page with these on it."""
    bands = {band: BandView(depth=0, oldest_wait=0.0) for band in Band}
    return QueuePage(
        serial=True,
        paused=frozenset({Band.BATCH, Band.INTERACTIVE}),
        waiting=waiting,
        bands=bands,
        jobs=(),
        tickets=rows,
    )


def bounds_of(
    *bounds: Bound, now: float = 100.0, budgeted: bool = False, paused: bool = False
) -> list[dict[str, Any]]:
    """How these bounds are shown."""
    explanation = Explanation(
        ticket=a_row().ticket,
        terms=TERMS,
        position=1,
        position_without_aging=1,
        position_without_affinity=1,
        ahead=(),
        ahead_total=0,
        bounds=bounds,
        budget=0.0 if budgeted else None,
    )
    shown: list[dict[str, Any]] = explained_json(
        Explained(row=a_row(paused=paused), explanation=explanation, now=now), NOON
    )["bounds"]
    return shown


def test_times_are_whole_milliseconds_and_points_have_three_decimals() -> None:
    page = page_json(a_page(a_row(eta=Eta(1.2345, 2.0), max_wait=30.0), waiting=1), 0, 100)

    (ticket,) = page["tickets"]
    assert (ticket["waited_ms"], ticket["max_wait_ms"]) == (61, 30_000)
    assert ticket["eta"] == {"p50_ms": 1234, "p90_ms": 2000}
    assert (ticket["score"], ticket["terms"]["aging"]) == (10.001, 0.001)
    assert ticket["needs_swap"] is None


def test_whole_points_are_exact_whatever_their_size() -> None:
    largest = 2**63 - 1
    terms = Terms(priority=largest, affinity=0, aging=0, score=largest * 1000)

    (ticket,) = page_json(a_page(a_row(terms=terms), waiting=1), 0, 100)["tickets"]

    assert ticket["score"] == ticket["terms"]["priority"] == largest


def test_a_wait_that_nobody_can_live_to_see_is_still_a_number() -> None:
    (ticket,) = page_json(a_page(a_row(eta=Eta(1e300, float("inf"))), waiting=1), 0, 100)["tickets"]

    assert ticket["eta"] == {"p50_ms": MOST_MS, "p90_ms": MOST_MS}


def test_paused_bands_come_in_the_order_of_the_bands() -> None:
    assert page_json(a_page(), 0, 100)["paused"] == ["interactive", "batch"]


def test_the_next_page_begins_where_this_one_ends() -> None:
    assert page_json(a_page(a_row(), waiting=3), 1, 1)["next"] == "/api/queue?offset=2&limit=1"
    assert page_json(a_page(a_row(), waiting=3), 2, 1)["next"] is None
    assert page_json(a_page(waiting=3), 5, 1)["next"] is None


def test_a_bound_says_until_when_somebody_can_pass() -> None:
    (soon, far, over) = bounds_of(
        Bound(band=Band.NORMAL, priority=1, after=160.5, ever=True),
        Bound(band=Band.INTERACTIVE, priority=101, after=100.0 + 86400.0, ever=True),
        Bound(band=Band.NORMAL, priority=0, after=40.0, ever=True),
    )

    assert (soon["in_ms"], read_moment(soon["after"])) == (60_500, (int(NOON) * 2 + 121) * 500_000)
    assert soon["words"] == (
        f"no normal request (priority 1) that arrives after {soon['after'][11:19]} can pass this one"
    )
    assert far["after"][:19].replace("T", " ") in far["words"]
    assert (over["in_ms"], over["words"]) == (
        0,
        "no normal request (priority 0) that arrives from now on can pass this one",
    )


@pytest.mark.parametrize(
    ("paused", "budgeted", "but"),
    [
        (True, False, ", once its band goes on"),
        (False, True, ", save for the swap budget"),
        (True, True, ", once its band goes on, save for the swap budget"),
    ],
)
def test_a_promise_says_what_it_does_not_cover(but: str, *, paused: bool, budgeted: bool) -> None:
    (soon, never, always) = bounds_of(
        Bound(band=Band.NORMAL, priority=1, after=160.5, ever=True),
        Bound(band=Band.NORMAL, priority=0, after=None, ever=False),
        Bound(band=Band.INTERACTIVE, priority=100, after=None, ever=True),
        paused=paused,
        budgeted=budgeted,
    )

    assert all(bound["words"].endswith(f" can pass this one{but}") for bound in (soon, never))
    assert always["words"].endswith(" can pass this one, for as long as it waits")


def test_without_aging_there_is_no_moment() -> None:
    (always, never) = bounds_of(
        Bound(band=Band.INTERACTIVE, priority=100, after=None, ever=True),
        Bound(band=Band.NORMAL, priority=0, after=None, ever=False),
    )

    assert (always["after"], always["in_ms"]) == (None, None)
    assert always["words"] == (
        "every interactive request (priority 100) that arrives can pass this one, for as long as it waits"
    )
    assert never["words"] == "no normal request (priority 0) that arrives from now on can pass this one"


def test_a_moment_that_no_calendar_has_is_the_end_of_time() -> None:
    (bound,) = bounds_of(Bound(band=Band.NORMAL, priority=0, after=1e15, ever=True))

    assert bound["after"] is None
    assert bound["in_ms"] == MOST_MS
    assert "the end of time" in bound["words"]
