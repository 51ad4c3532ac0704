"""Random lives of a box: what may happen to it, as values that hypothesis can draw and shrink.

Times are whole multiples of 1/64 s, so that floats, microseconds and fractions
all mean the same moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from hypothesis import strategies as st

from llamaswap.config.model import GroupConfig
from llamaswap.scheduling.vocabulary import Band
from support.scheduling_box import Box

MODELS = "ABCD"
TICK = 1 / 64  # seconds


@dataclass(frozen=True, slots=True)
class Arrive:
    """A request comes in."""

    model: str
    priority: int
    job: float  # seconds
    overrides: bool = False


@dataclass(frozen=True, slots=True)
class Leave:
    """The client of one of the tickets leaves; `which` is taken modulo their number."""

    which: int


@dataclass(frozen=True, slots=True)
class Pass:
    """Time passes."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Break:
    """From now on the model cannot be loaded, or can be again."""

    model: str
    broken: bool


@dataclass(frozen=True, slots=True)
class Unload:
    """The operator unloads these models."""

    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reprioritise:
    """One of the tickets gets another priority; `which` is taken modulo their number."""

    which: int
    priority: int


@dataclass(frozen=True, slots=True)
class Pause:
    """These bands stand still from now on."""

    bands: tuple[Band, ...]


@dataclass(frozen=True, slots=True)
class Resume:
    """These bands go on."""

    bands: tuple[Band, ...]


Step = Arrive | Leave | Pass | Break | Unload | Reprioritise | Pause | Resume

_models = st.sampled_from(MODELS)
_priorities = st.one_of(
    st.integers(-3, 3),
    st.sampled_from((-100, -99, -98, 0, 1, 2, 10, 100, 101)),
    st.sampled_from((0, 2**63 - 1, -(2**63))).flatmap(lambda base: st.integers(base - 2, base + 2)),
)
_times = st.sampled_from((0.0, TICK, 0.5, 1.0, 2.0, 5.0, 30.0, 60.0, 90.0, 600.0, 6000.0))
_steps: st.SearchStrategy[Step] = st.one_of(
    st.builds(Arrive, _models, _priorities, _times),
    st.builds(Arrive, _models, st.integers(0, 1), st.just(60.0)),  # a crowd that ties
    st.builds(Leave, st.integers(0, 40)),
    st.builds(Pass, _times),
    st.builds(Break, _models, st.booleans()),
    st.builds(Unload, st.lists(_models, min_size=1, max_size=2, unique=True).map(tuple)),
)
walks: st.SearchStrategy[list[Step]] = st.lists(_steps, max_size=40)

_bands = st.lists(st.sampled_from(Band), min_size=1, max_size=3, unique=True).map(tuple)
_meddling: st.SearchStrategy[Step] = st.one_of(
    st.builds(Reprioritise, st.integers(0, 40), _priorities),
    st.builds(Pause, _bands),
    st.builds(Resume, _bands),
)
meddled_walks: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(_steps, _steps, _steps, _meddling), max_size=40
)
"""Lives in which an operator meddles with the queue, too."""


ruthless_walks: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(_steps, _steps, _meddling, st.builds(Arrive, _models, _priorities, _times, st.just(True))),
    max_size=40,
)
"""The same, and now and then somebody who may evict protected models."""


@st.composite
def groupings(draw: st.DrawFn) -> tuple[GroupConfig, ...]:
    """Draw a partition of MODELS into groups of any kind."""
    homes = draw(st.tuples(*(st.integers(0, 2) for _ in MODELS)))
    return tuple(
        GroupConfig(
            id=f"g{home}",
            swap=draw(st.booleans()),
            exclusive=draw(st.booleans()),
            persistent=draw(st.booleans()),
            members=tuple(model for model, its in zip(MODELS, homes, strict=True) if its == home),
        )
        for home in sorted(set(homes))
    )


def walk(box: Box, steps: Sequence[Step], *, load_time: float, stop_time: float) -> None:
    """Take the box through these steps; it checks itself on the way."""
    box.fleet.load_time, box.fleet.stop_time = load_time, stop_time
    for step in steps:
        _take(box, step)


def _take(box: Box, step: Step) -> None:
    match step:
        case Arrive(model, priority, job, overrides):
            box.arrive(model, priority, job=job, overrides=overrides)
        case Leave(which):
            if box.tickets:
                box.cancel(box.tickets[which % len(box.tickets)])
        case Pass(seconds):
            box.advance(seconds)
        case Break(model, broken):
            (box.fleet.broken.add if broken else box.fleet.broken.discard)(model)
        case Unload(models):
            box.unload(*models)
        case Reprioritise(which, priority):
            if box.tickets:
                box.reprioritise(box.tickets[which % len(box.tickets)], priority)
        case Pause(bands):
            box.pause(*bands)
        case Resume(bands):
            box.resume(*bands)
        case _ as unknown:
            assert_never(unknown)
