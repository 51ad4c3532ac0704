"""Sums of uncertain times, kept as a small set of equally likely futures.

A forecast adds up runs and loads whose times are skewed, and often of two
kinds (a short chat, a long one).  So we neither add medians, which says too
little, nor take the sum for a normal curve, which is wrong where it matters
most: for the first few in the queue.  Each of 64 futures draws its own time
for everything that happens in it, and the quantiles are read off them.

The draws are a Latin hypercube (McKay, Beckman, Conover, 1979): each future
gets one of 64 equal shares of a distribution, in an order of its own for each
thing that happens.  The order comes from a table: the same question has the
same answer.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import lru_cache
from heapq import heapreplace
from itertools import repeat
from operator import add, itemgetter, mul
from statistics import NormalDist
from typing import cast

FUTURES = 64

Times = Sequence[float]  # one for each future

NOW: Times = (0.0,) * FUTURES

_ORDERS = 512  # shuffled orders that are dealt in one after the other; each round shuffles them anew
_REMEMBERED = 1024  # orders, of about 600 bytes; each is made when it is needed
_BELL: Times = tuple(NormalDist().inv_cdf((index + 0.5) / FUTURES) for index in range(FUTURES))

_Shuffle = Callable[[Times], tuple[float, ...]]


@lru_cache(_REMEMBERED)
def _order(seed: int) -> _Shuffle:
    """Return what puts 64 values into one of the shuffled orders."""
    draw = random.Random(seed).random  # noqa: S311 - a table, and no secret
    keys = [draw() for _ in range(FUTURES)]  # sorted by these: a third of the time that `shuffle` takes
    return cast("_Shuffle", itemgetter(*sorted(range(FUTURES), key=keys.__getitem__)))


def dealt(shares: Times, turn: int) -> Times:
    """Deal the shares of a distribution out to the futures; as good as independent for each turn."""
    round_, turned = divmod(turn, _ORDERS)
    once = _order(turned)(shares)
    return _order(_ORDERS + round_)(once) if round_ else once


def after(times: Times, more: Times) -> Times:
    """Return the moments so much later."""
    return tuple(map(add, times, more))


def latest(times: Times, others: Times) -> Times:
    """Return the later moment in each future."""
    return tuple(map(max, times, others))


def after_many(times: Times, mean: float, variance: float, turn: int) -> Times:
    """Return the moments after a sum of many terms, of which only mean and variance are known.

    The sum is taken for normal: by the time that there are so many, it is.
    """
    bell = map(mul, repeat(variance**0.5), dealt(_BELL, turn))
    return tuple(map(max, times, map(add, map(add, times, repeat(mean)), bell)))


def median_and_p90(times: Times) -> tuple[float, float]:
    """Return the two quantiles of a forecast."""
    ordered = sorted(times)
    return (ordered[31] + ordered[32]) / 2, (ordered[57] + ordered[58]) / 2  # ranks 32.5 and 58.5 of 64 + 1


class Slots:
    """Several jobs of one model side by side, in each future.

    Args:
        ends: when each of the jobs that run now ends, at least one.
        width: how many may run at once, at least as many.
    """

    def __init__(self, ends: Sequence[Times], width: int) -> None:
        self._free = width - len(ends)
        self._heaps = [sorted(each) for each in zip(*ends, strict=True)]

    def take(self, earliest: Times, run: Times) -> Times:
        """Let another job go as soon as there is a slot; return when that is.

        Args:
            earliest: it goes no sooner.
            run: how long it takes.
        """
        if self._free:
            self._free -= 1
            for heap, begin, seconds in zip(self._heaps, earliest, run, strict=True):
                heap.append(begin + seconds)
                heap.sort()
            return earliest
        begun = latest(earliest, tuple(map(itemgetter(0), self._heaps)))
        for heap, begin, seconds in zip(self._heaps, begun, run, strict=True):
            heapreplace(heap, begin + seconds)
        return begun

    def all_ended(self) -> Times:
        """Return when the last of the jobs ends."""
        return tuple(map(max, self._heaps))
