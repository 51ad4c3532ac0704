"""`/api/queue` and `/api/scheduler`: the queue as people see it, and the buttons that change it.

Knows paths, queries, bodies and who may press a button.  What is true of the
queue, and what a button does, is `llamaswap.queueing`'s business; how it looks
as JSON that of `queue_json`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import msgspec

from llamaswap.calls.forms import query_field, query_pairs
from llamaswap.calls.priority import ALIASES
from llamaswap.config.priorities import PRIORITIES
from llamaswap.errors import BadRequest, NoSuchTicket, Refusal
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.heads import RequestHead
from llamaswap.queueing import Queueing
from llamaswap.scheduling.vocabulary import Band, band_of
from llamaswap.web.answers import JSON
from llamaswap.web.keys import Keyring
from llamaswap.web.queue_json import explained_json, page_json

USUAL_LIMIT: Final = 100
MOST_LIMIT: Final = 1000
"""Tickets on one page."""

_DIGITS: Final = re.compile(r"[0-9]{1,18}", flags=re.ASCII)


class NotAllowed(Refusal):
    """The key belongs to a caller whose priority is limited."""

    status = 403

    def __init__(self) -> None:
        super().__init__("a caller with a maxPriority cannot change the queue")


class QueuePages:
    """Answers everything about the queue.

    Args:
        keyring: tells whose key a request carries.
        wall: unix seconds.
    """

    def __init__(self, queueing: Queueing, keyring: Keyring, wall: Callable[[], float]) -> None:
        self._queueing = queueing
        self._keyring = keyring
        self._wall = wall

    async def show(self, exchange: Exchange, rest: bytes) -> None:
        """Answer `GET /api/queue`.

        Raises:
            BadRequest: `offset` or `limit` is no such number.
        """
        query = exchange.head.query
        offset = _number(query, "offset", usual=0, least=0, most=None)
        limit = _number(query, "limit", usual=USUAL_LIMIT, least=1, most=MOST_LIMIT)
        _answer(exchange, page_json(self._queueing.queue(offset, limit), offset, limit))

    async def show_one(self, exchange: Exchange, rest: bytes) -> None:
        """Answer `GET /api/queue/<rest>`.

        Raises:
            NoSuchTicket: nobody waits under that number.
            NeedsSerial: nothing is scored.
        """
        _answer(exchange, explained_json(self._queueing.explain(_ticket(rest)), self._wall()))

    async def reprioritise(self, exchange: Exchange, rest: bytes) -> None:
        """Answer `PATCH /api/queue/<rest>`, whose body is `{"priority": ...}`.

        Raises:
            NotAllowed: by this caller.
            BadRequest: it says something else.
            NoSuchTicket: as `show_one`.
            NeedsSerial: as `show_one`.
        """
        self._check(exchange.head)
        body = await exchange.body()
        number, priority = _ticket(rest), read_priority(body.decoded)
        self._queueing.reprioritise(number, priority)
        _answer(exchange, {"msg": "ok", "id": number, "priority": priority, "band": band_of(priority)})

    async def cancel(self, exchange: Exchange, rest: bytes) -> None:
        """Answer `DELETE /api/queue/<rest>`.

        Raises:
            NotAllowed: by this caller.
            NoSuchTicket: as `show_one`.
        """
        self._check(exchange.head)
        number = _ticket(rest)
        self._queueing.cancel(number)
        _answer(exchange, {"msg": "ok", "id": number})

    async def pause(self, exchange: Exchange, rest: bytes) -> None:
        """Answer `POST /api/scheduler/pause`.

        Raises:
            NotAllowed: by this caller.
            BadRequest: `band` names no band.
            NeedsSerial: as `show_one`.
        """
        self._hold(exchange, self._queueing.pause)

    async def resume(self, exchange: Exchange, rest: bytes) -> None:
        """Answer `POST /api/scheduler/resume`; raises as `pause` does."""
        self._hold(exchange, self._queueing.resume)

    def _hold(self, exchange: Exchange, change: Callable[[frozenset[Band]], None]) -> None:
        self._check(exchange.head)
        change(read_bands(exchange.head.query))
        paused = self._queueing.paused
        _answer(exchange, {"msg": "ok", "paused": [band for band in Band if band in paused]})

    def _check(self, head: RequestHead) -> None:
        """Raise NotAllowed for those who may not ask for everything."""
        if self._keyring.limited(head) is not None:
            raise NotAllowed


def read_priority(body: bytes) -> int:
    """Read `{"priority": ...}`: a whole number of 64 bits, or an alias in any letter case.

    Raises:
        BadRequest: it is anything else.
    """
    try:
        said: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as mistake:
        raise BadRequest("the body is no JSON") from mistake
    if not isinstance(said, dict) or said.keys() != {"priority"}:
        raise BadRequest('the body must be {"priority": ...} and nothing else')
    priority = said["priority"]
    if isinstance(priority, str):
        priority = ALIASES.get(priority.lower().encode("utf-8", "replace"))
    if isinstance(priority, bool) or not isinstance(priority, int) or priority not in PRIORITIES:
        raise BadRequest("priority must be a whole number of 64 bits, interactive, normal or batch")
    return priority


def read_bands(query: bytes | None) -> frozenset[Band]:
    """Read which bands a query means: `band` once or several times, with commas or without; all if none.

    Raises:
        BadRequest: one of them is no band.
    """
    names = [name for key, value in query_pairs(query) if key == "band" for name in value.split(",")]
    try:
        return frozenset(Band(name.strip()) for name in names) or frozenset(Band)
    except ValueError as mistake:
        raise BadRequest("band must be interactive, normal or batch") from mistake


def _answer(exchange: Exchange, value: Any) -> None:
    """Answer with one line of JSON that no browser takes for HTML; a page is too long for `answers`' way."""
    body = msgspec.json.encode(value)
    for unsafe, escaped in ((b"<", b"\\u003c"), (b">", b"\\u003e")):
        body = body.replace(unsafe, escaped)
    exchange.respond(200, body + b"\n", headers=(JSON,))


def _ticket(rest: bytes) -> int:
    text = rest.decode("latin-1")
    if not _DIGITS.fullmatch(text):
        raise NoSuchTicket
    return int(text)


def _number(query: bytes | None, name: str, *, usual: int, least: int, most: int | None) -> int:
    text = query_field(query, name)
    if not text:
        return usual
    number = int(text) if _DIGITS.fullmatch(text) else -1
    if number < least or (most is not None and number > most):
        span = f"from {least} to {most}" if most is not None else f"of at least {least}"
        raise BadRequest(f"{name} must be a whole number {span}")
    return number
