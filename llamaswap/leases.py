"""What who asks for a model gets of the dispatcher: a lease, or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, Protocol

import msgspec

from llamaswap.processes.server import ModelServer
from llamaswap.scheduling.vocabulary import Band, Ticket, Verdict

Queued = Callable[[Callable[[], int | None]], None]
"""Told that a ticket waits, with a question for its place: 1 goes next, None waits no more."""

Bounded = Literal["queue_full", "hopeless", "deadline"]
"""Why somebody was turned away: too many of its band wait, its deadline cannot be met, or has passed."""

SwapReason = Literal["request", "preload", "revive"]
"""Why a load was begun: for a request, at the start, or because the server died under a job."""

BoxState = Literal["run", "load", "idle"]
"""What the box does: it serves a job, it loads and serves nobody, or neither."""


class DispatchObserver(Protocol):
    """Who counts what the dispatcher does."""

    def dispatched(self, verdict: Verdict) -> None:
        """A ticket has left the waiting room for the box."""

    def abandoned(self, band: Band) -> None:
        """A client left while its ticket waited."""

    def load_began(self, model: str) -> None:
        """A load was begun because a ticket needs it."""

    def load_ended(self, model: str, seconds: float) -> None:
        """A load made its model ready."""

    def swap(self, model: str, reason: SwapReason) -> None:
        """A load was begun, for this reason; comes with each `load_began`."""

    def bounded(self, band: Band, reason: Bounded) -> None:
        """A ticket was turned away because of `maxWait`, `maxQueue` or its own limit."""

    def eta_missed(self, band: Band, seconds: float) -> None:
        """A ticket was dispatched so much earlier or later than was expected of half of its kind."""

    def box(self, state: BoxState, now: float) -> None:
        """The box is in another state from now on, seconds on the clock; it begins idle."""


class Abandoned(Exception):
    """The client left before its ticket was served.

    Args:
        ticket: what it waited with.
        verdict: why it had been dispatched, or None if it still waited.
        waited: seconds since it arrived.
        metadata: what its activity row says of it if it still waited.
    """

    def __init__(
        self, ticket: Ticket, verdict: Verdict | None, waited: float, metadata: Mapping[str, str]
    ) -> None:
        super().__init__(f"abandoned after {waited:.1f} s")
        self.ticket = ticket
        self.verdict = verdict
        self.waited = waited
        self.metadata = metadata


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The right to talk to a ready model's server, until the `async with` that gave it ends."""

    server: ModelServer
    verdict: Verdict | None  # None for a call that went past the queue
    load: float  # seconds of load between dispatch and lease; 0 when the model was resident
    crashes: int = 0  # of the server, by the time of the lease
    stops: int = 0  # of the server, by that time
    number: int = 0  # of the ticket; 0 for a call that went past the queue
