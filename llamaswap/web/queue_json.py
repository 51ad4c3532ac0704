"""How the queue looks as JSON.  Pure.

Times are whole milliseconds, points are numbers with three decimals at most,
ids are the numbers of tickets.
"""

from __future__ import annotations

from typing import Any, Final

from llamaswap.queueing import Explained, JobRow, QueuePage, TicketRow
from llamaswap.scheduling.explaining import Ahead, Bound, Terms
from llamaswap.scheduling.forecast import Eta
from llamaswap.scheduling.vocabulary import Band, Ticket
from llamaswap.telemetry.messages import bands_facts
from llamaswap.telemetry.stamps import microseconds, write_moment

JsonObject = dict[str, Any]

MOST_MS: Final = 2**53
"""Milliseconds that are told at most: beyond, readers of JSON lose digits."""

HALF_A_DAY: Final = 12 * 3600.0
"""Seconds within which the time of day says which day is meant."""


def page_json(page: QueuePage, offset: int, limit: int) -> JsonObject:
    """Return a page of the queue; `next` is where it goes on, None at its end."""
    end = offset + len(page.tickets)
    return {
        "scheduler": "serial" if page.serial else "fifo",
        "paused": [band for band in Band if band in page.paused],
        "waiting": page.waiting,
        "bands": bands_facts(page.bands),
        "jobs": [_job(job) for job in page.jobs],
        "offset": offset,
        "limit": limit,
        "next": f"/api/queue?offset={end}&limit={limit}" if page.tickets and end < page.waiting else None,
        "tickets": [_ticket(row) for row in page.tickets],
    }


def explained_json(explained: Explained, wall: float) -> JsonObject:
    """Return one ticket and why it waits.

    Args:
        wall: unix seconds, at the moment of the explanation.
    """
    explanation = explained.explanation
    but = _exceptions(paused=explained.row.paused, budgeted=explanation.budget is not None)
    return {
        "ticket": _ticket(explained.row),
        "ahead": [_ahead(ahead) for ahead in explanation.ahead],
        "ahead_total": explanation.ahead_total,
        "position_without_aging": explanation.position_without_aging,
        "position_without_affinity": explanation.position_without_affinity,
        "swap_budget_ms": _ms(explanation.budget or 0.0),
        "bounds": [_bound(bound, explained.now, wall, but) for bound in explanation.bounds],
    }


def _about(row: JobRow | TicketRow) -> JsonObject:
    return {**_named(row.ticket), "band": row.band, "waited_ms": _ms(row.waited)}


def _named(ticket: Ticket) -> JsonObject:
    return {"id": ticket.number, "model": ticket.model, "priority": ticket.priority}


def _job(row: JobRow) -> JsonObject:
    return {
        **_about(row),
        "state": "loading" if row.loading else "running",
        "since_ms": _ms(row.lasted),
        "remaining": _eta(row.remaining),
    }


def _ticket(row: TicketRow) -> JsonObject:
    terms = row.terms
    return {
        **_about(row),
        "terms": None if terms is None else _terms(terms),
        "score": None if terms is None else _points(terms.score),
        "position": row.position,
        "needs_swap": row.swap,
        "swap_budget": row.budget,
        "paused": row.paused,
        "max_wait_ms": None if row.max_wait is None else _ms(row.max_wait),
        "eta": _eta(row.eta),
    }


def _terms(terms: Terms) -> JsonObject:
    return {"priority": terms.priority, "swap_affinity": terms.affinity, "aging": _points(terms.aging)}


def _ahead(ahead: Ahead) -> JsonObject:
    return {**_named(ahead.ticket), "by": ahead.by}


def _exceptions(*, paused: bool, budgeted: bool) -> str:
    """Return what the promise that nobody can pass does not cover, as the end of its sentence."""
    return f"{', once its band goes on' if paused else ''}{', save for the swap budget' if budgeted else ''}"


def _bound(bound: Bound, now: float, wall: float, but: str) -> JsonObject:
    """Return until when one like this can pass, as moments and in words; what is over ends now.

    Args:
        but: what comes behind a promise.
    """
    who = f"{bound.band} request (priority {bound.priority})"
    shown: JsonObject = {"band": bound.band, "priority": bound.priority, "after": None, "in_ms": None}
    if bound.after is None:
        words = (
            f"every {who} that arrives can pass this one, for as long as it waits"
            if bound.ever
            else f"no {who} that arrives from now on can pass this one{but}"
        )
        return {**shown, "words": words}
    left = bound.after - now
    shown["after"] = moment = _moment(wall + left)
    shown["in_ms"] = _ms(max(0.0, left))
    when = "from now on" if left <= 0 else f"after {_clock_time(moment, left)}"
    return {**shown, "words": f"no {who} that arrives {when} can pass this one{but}"}


def _eta(eta: Eta | None) -> JsonObject | None:
    return None if eta is None else {"p50_ms": _ms(eta.p50), "p90_ms": _ms(eta.p90)}


def _points(thousandths: int) -> int | float:
    return thousandths // 1000 if thousandths % 1000 == 0 else thousandths / 1000


def _ms(seconds: float) -> int:
    return int(min(seconds * 1000, MOST_MS))


def _moment(unix: float) -> str | None:
    """Return an RFC 3339 moment; None where there is no such year."""
    try:
        return write_moment(microseconds(unix))
    except (OverflowError, ValueError):
        return None


def _clock_time(moment: str | None, left: float) -> str:
    """Return how a person says a moment that is so many seconds away."""
    if moment is None:
        return "the end of time"
    return moment[11:19] if left < HALF_A_DAY else moment[:19].replace("T", " ")
