"""One caller's way to a lease: what it asked for, what was decided for it, and the block that holds it.

Knows how a caller waits and how it leaves.  Who goes next, and what a decision
does to the world, is the dispatcher's business.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Protocol

import msgspec
from twisted.internet.defer import CancelledError, Deferred
from typing_extensions import override

from llamaswap.errors import Refusal
from llamaswap.leases import Abandoned, Lease, Queued, SwapReason
from llamaswap.scheduling.vocabulary import Ticket, Verdict

Told = Callable[[Verdict, float], None]
"""Told why a ticket was dispatched, and when, in seconds on the clock."""


def no_one(_verdict: Verdict, _now: float) -> None:
    """Be told and do nothing."""


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller asks for."""

    model: str  # a real model id
    priority: int
    looks_only: bool = False  # reads a page or counts tokens: it may pass the queue of a resident model
    told: Told = no_one
    queued: Queued | None = None
    max_wait: float | None = None  # seconds that it may wait; None = as long as its band may
    overrides: bool = False  # it may evict protected models
    reason: SwapReason = "request"  # why a load that it needs is begun, for the counters

    @property
    def brief(self) -> bool:
        """Whether its job is a look or a greeting, whose time tells nothing of how long jobs take."""
        return self.looks_only or self.reason == "preload"

    @property
    def patient(self) -> bool:
        """Whether no limit counts for it: nobody waits for its answer."""
        return self.reason == "preload"


class Waiter:
    """One ticket's caller, and what has been decided for it."""

    __slots__ = ("answer", "dispatched", "ready", "ticket", "turn", "verdict", "wish")

    def __init__(self, ticket: Ticket, wish: Wish) -> None:
        self.ticket = ticket
        self.wish = wish
        self.answer: Lease | Refusal | None = None
        self.ready: Deferred[None] | None = None  # only of a caller that has to wait for its answer
        self.verdict: Verdict | None = None
        self.dispatched = 0.0
        self.turn = -1  # the event that dispatched it

    def lease(self) -> Lease:
        """Return the lease that the caller got, or raise the refusal."""
        assert self.answer is not None
        if isinstance(self.answer, Refusal):
            raise self.answer
        return self.answer

    def end(self, answer: Lease | Refusal) -> None:
        """Give the caller its answer."""
        self.answer = answer
        if self.ready is not None:
            self.ready.callback(None)


class Host(Protocol):
    """Who gives out leases."""

    def pass_by(self, model: str) -> Lease | None:
        """Return a lease for a call that only looks, if it needs no ticket now."""

    def enter(self, wish: Wish) -> Waiter:
        """Queue a ticket; its waiter may have its answer already."""

    def abandon(self, waiter: Waiter) -> Abandoned:
        """Take back the ticket of a caller that was cancelled; returns what it raises."""

    def give_back(self, ticket: Ticket, *, whole: bool) -> None:
        """The job is done; `whole` says whether nothing broke it off."""


class Claim(AbstractAsyncContextManager[Lease, None]):
    """One lease, from the wish for it to its end."""

    __slots__ = ("_host", "_lease", "_ticket", "_wish")

    def __init__(self, host: Host, wish: Wish) -> None:
        self._host = host
        self._wish = wish
        self._ticket: Ticket | None = None  # none for a call that went past the queue
        self._lease: Lease | None = None

    @override
    async def __aenter__(self) -> Lease:
        host, wish = self._host, self._wish
        lease = host.pass_by(wish.model) if wish.looks_only else None
        if lease is None:
            waiter = host.enter(wish)
            if waiter.answer is None:
                waiter.ready = Deferred()
                try:
                    await waiter.ready
                except CancelledError:
                    raise host.abandon(waiter) from None
            lease = waiter.lease()
            self._ticket = waiter.ticket
        # While it is in use, its TTL does not run.
        lease.server.begin_use()
        self._lease = lease
        return lease

    @override
    async def __aexit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._lease is not None
        if kind is GeneratorExit:
            return  # thrown away together with everything that it belongs to
        try:
            self._lease.server.end_use()
        finally:
            if self._ticket is not None:
                self._host.give_back(self._ticket, whole=kind is None)
