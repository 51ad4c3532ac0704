"""The words of the scheduler: tickets and facts come in, decisions go out.

Everything here is a value.  Nothing here decides, and nothing here knows how
a decision is carried out; that is `llamaswap.dispatch`'s business.

What is made anew for each request is a `msgspec.Struct`: as frozen as a frozen
dataclass, and made in a sixth of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import msgspec

from llamaswap.config.priorities import ANCHORS
from llamaswap.errors import Refusal

MICROSECONDS = 1_000_000


class Band(StrEnum):
    """The three kinds of intent; every metric of the scheduler is labelled by one."""

    INTERACTIVE = "interactive"  # priority >= 100
    NORMAL = "normal"  # 0 <= priority < 100
    BATCH = "batch"  # priority < 0


BAND_ANCHORS: Mapping[Band, int] = {Band(name): priority for name, priority in ANCHORS.items()}


def band_of(priority: int) -> Band:
    """Return the band of the highest anchor (100, 0) that is not above `priority`, or BATCH."""
    if priority >= BAND_ANCHORS[Band.INTERACTIVE]:
        return Band.INTERACTIVE
    if priority >= BAND_ANCHORS[Band.NORMAL]:
        return Band.NORMAL
    return Band.BATCH


class Term(StrEnum):
    """The terms of the score that can change who goes next."""

    AGING = "aging"
    SWAP_AFFINITY = "swap_affinity"
    SWAP_BUDGET = "swap_budget"  # no term of the score, but it may come before it


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """One request that waits for, or holds, the box."""

    number: int  # unique and growing: the arrival order, and the tie-break
    model: str  # a real model id
    priority: int  # the caller's, any integer; higher is more urgent
    arrived: float  # seconds on the clock that `Facts.now` reads
    overrides: bool = False  # it may evict protected models
    brief: bool = False  # a look or a greeting: what takes time is the load


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the world looked like when an event was taken up: input to choosing, no permission to act."""

    now: float  # seconds, monotonic
    running: frozenset[str] = frozenset()  # models whose child is not stopped: starting, ready, stopping
    ready: frozenset[str] = frozenset()  # models that answer now; a subset of `running`
    stopping: frozenset[str] = frozenset()  # models whose child is on its way out; a subset of `running`


NO_TERM: frozenset[Term] = frozenset()
NO_BAND: frozenset[Band] = frozenset()


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Why a request went when it did; what people read of it is written when somebody does."""

    priority: int  # what it was ordered by
    band: Band
    waited_us: int  # from arrival to dispatch, never negative; the load is not in it
    thousandths: int | None = None  # of a point, what it won with; None where nothing is scored
    changed_by: frozenset[Term] = NO_TERM  # the terms without which another ticket would have gone
    budget_us: int = 0  # estimated work that the swap budget let it do before a swap; 0 = it did not decide

    @property
    def waited(self) -> float:
        """Seconds from arrival to dispatch."""
        return self.waited_us / MICROSECONDS

    @property
    def scored(self) -> bool:
        """Whether a score decided."""
        return self.thousandths is not None

    @property
    def score(self) -> str:
        """What it won with, at most three decimals, no exponent; '' where nothing is scored."""
        return "" if self.thousandths is None else format_thousandths(self.thousandths)

    @property
    def metadata(self) -> Mapping[str, str]:
        """What its activity row says."""
        if self.thousandths is None:
            return {"fifo_priority": str(self.priority)}
        metadata = {**waiting_metadata(self.priority, self.waited_us), "serial_score": self.score}
        if self.budget_us:
            metadata["serial_swap_budget_ms"] = str(self.budget_us // 1000)
        return metadata


def waiting_metadata(priority: int, waited_us: int) -> dict[str, str]:
    """Return what the activity row of a scored request says even if it was never dispatched."""
    return {
        "serial_priority": str(priority),
        "serial_band": str(band_of(priority)),
        "serial_queue_wait_ms": str(waited_us // 1000),
    }


@lru_cache(256)  # each score is written twice, for the client and for the row, and most are alike
def format_thousandths(value: int) -> str:
    """Write thousandths of a point with at most three decimals: 110000 is '110', -88267 is '-88.267'."""
    sign = "-" if value < 0 else ""
    whole, fraction = divmod(abs(value), 1000)
    if not fraction:
        return f"{sign}{whole}"
    return f"{sign}{whole}.{fraction:03d}".rstrip("0")


class Dispatch(msgspec.Struct, frozen=True):
    """The ticket leaves the waiting room now: the box is its, its load included."""

    ticket: Ticket
    verdict: Verdict


class Load(msgspec.Struct, frozen=True):
    """Stop `evict`, then make `model` ready; `loaded` or `load_failed` says how it ended."""

    model: str
    evict: frozenset[str]


class Resume(msgspec.Struct, frozen=True):
    """Go on with a load that was begun under another configuration, as a `Load` does; it is no new one."""

    model: str
    evict: frozenset[str]


class Serve(msgspec.Struct, frozen=True):
    """The model of this dispatched ticket is ready: let it talk to its upstream."""

    ticket: Ticket


class Stop(msgspec.Struct, frozen=True):
    """End these models, a load under way included; nobody waits for it."""

    models: frozenset[str]


class Refuse(msgspec.Struct, frozen=True):
    """The ticket is gone from the scheduler; its caller gets this answer."""

    ticket: Ticket
    refusal: Refusal


Decision = Dispatch | Load | Resume | Serve | Stop | Refuse


@dataclass(frozen=True, slots=True, kw_only=True)
class BandView:
    """The waiting tickets of one band, at one moment."""

    depth: int
    oldest_wait: float  # seconds; 0 when none waits


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    """The scheduler at one moment; a snapshot, never acted on."""

    bands: Mapping[Band, BandView]  # all three, always
    jobs: tuple[Ticket, ...]  # dispatched and not yet ended
    paused: frozenset[Band] = NO_BAND  # of these nobody is dispatched


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """What one scheduler leaves to the next when the configuration changes.

    A ticket keeps its number and arrival time, and with them its place.
    """

    waiting: tuple[Ticket, ...] = ()  # in arrival order
    loading: tuple[Ticket, ...] = ()  # dispatched; a load of their model is under way
    served: tuple[Ticket, ...] = ()  # dispatched, and talking to their upstream
    unclaimed: frozenset[str] = frozenset()  # models that load although nobody waits for it any more
    paused: frozenset[Band] = NO_BAND
    budget_spent: float = 0.0  # seconds of the swap budget since the last load


MakeRoom = Callable[[str, frozenset[str]], frozenset[str]]
"""`make_room(target, running)`: the models of `running` that must stop before `target` may run.

A pure question, asked often: it logs nothing and changes nothing.
"""
