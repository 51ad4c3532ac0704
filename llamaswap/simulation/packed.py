"""Arrivals in columns: a sixth of the memory of as many objects, in the order of time.

A trace of millions is played many times over; an arrival is made again whenever somebody looks at it.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import overload

from typing_extensions import override

from llamaswap.simulation.arrivals import Arrival

_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_NEVER = math.inf


class PackedArrivals(Sequence[Arrival]):
    """A sequence that grows at its end and is sorted once; as one of `Arrival`s to whoever reads it."""

    def __init__(self) -> None:
        self._at = array("d")
        self._run = array("d")
        self._cancel = array("d")
        self._priority = array("q")
        self._model = array("I")
        self._user = array("I")
        self._words: list[str] = []
        self._numbers: dict[str, int] = {}
        self._order: array[int] | None = None  # None: as they were added

    def add(self, arrival: Arrival, at: float) -> None:
        """Put one at the end, at another time than its own; `sort` sees to its place."""
        self._at.append(at)
        self._run.append(arrival.run)
        self._cancel.append(_NEVER if arrival.cancel_after is None else arrival.cancel_after)
        self._priority.append(min(max(arrival.priority, _SMALLEST), _LARGEST))
        self._model.append(self._number(arrival.model))
        self._user.append(self._number(arrival.user))

    def sort(self) -> None:
        """Put all in the order of time, those of one moment as they were added."""
        if any(later < earlier for earlier, later in pairwise(self._at)):
            self._order = array("I", sorted(range(len(self._at)), key=self._at.__getitem__))

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that is asked for, sorted."""
        return tuple(sorted({self._words[number] for number in set(self._model)}))

    @override
    def __len__(self) -> int:
        return len(self._at)

    @override
    def __iter__(self) -> Iterator[Arrival]:
        return map(self._arrival, self._order if self._order is not None else range(len(self._at)))

    @overload
    def __getitem__(self, index: int) -> Arrival: ...
    @overload
    def __getitem__(self, index: slice) -> list[Arrival]: ...
    @override
    def __getitem__(self, index: int | slice) -> Arrival | list[Arrival]:
        places = self._order if self._order is not None else range(len(self._at))
        if isinstance(index, slice):
            return [self._arrival(place) for place in places[index]]
        return self._arrival(places[index])

    def _arrival(self, place: int) -> Arrival:
        cancel = self._cancel[place]
        return Arrival(
            at=self._at[place],
            model=self._words[self._model[place]],
            priority=self._priority[place],
            run=self._run[place],
            user=self._words[self._user[place]],
            cancel_after=None if cancel == _NEVER else cancel,
        )

    def _number(self, word: str) -> int:
        number = self._numbers.get(word)
        if number is None:
            number = self._numbers[word] = len(self._words)
            self._words.append(word)
        return number
