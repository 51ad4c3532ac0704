"""The last hour of the machine, one sample per poll.

Knows when to ask and what is kept.  The asking is an errand's (`llamaswap.telemetry.errand`); how a sample is
shown is not known here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from llamaswap.telemetry.errand import Errand
from llamaswap.telemetry.gpu import GpuSample
from llamaswap.telemetry.host import HostSample
from llamaswap.telemetry.stamps import microseconds

HISTORY: Final = 3600.0  # seconds
PATIENCE: Final = 0.8  # of the interval between two polls
STALE: Final = 3.0  # intervals after which the latest sample says nothing about now


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The machine and its graphics processors at one moment."""

    at_us: int  # unix microseconds
    host: HostSample | None  # None where it could not be read
    gpus: tuple[GpuSample, ...]  # () where there are none, or they could not be read


class Sampler:
    """Takes samples at a steady pace and keeps an hour of them.

    Args:
        host: asks the machine.
        gpus: asks the graphics processors.
        wall: unix seconds.
        every: seconds between two polls, > 0.
    """

    _log = Logger()

    def __init__(
        self,
        host: Errand[HostSample],
        gpus: Errand[tuple[GpuSample, ...]],
        *,
        clock: IReactorTime,
        wall: Callable[[], float],
        every: float,
    ) -> None:
        self._host = host
        self._gpus = gpus
        self._clock = clock
        self._wall = wall
        self._every = every
        self._kept: deque[Sample] = deque(maxlen=max(1, int(HISTORY / every)))
        self._taken = float("-inf")  # when the last one was, seconds on the clock
        self._next: IDelayedCall | None = None

    def start(self) -> None:
        """Open the sources now, take the first sample one interval later."""
        self._host.ask()
        self._gpus.ask()
        self._next = self._clock.callLater(self._every, self._poll)

    def stop(self) -> None:
        """Take no more samples; what was kept stays readable."""
        if self._next is not None:
            self._next.cancel()
            self._next = None
        self._host.end()
        self._gpus.end()

    def latest(self) -> Sample | None:
        """Return the last sample, unless it is too old to speak for now."""
        if not self._kept or self._clock.seconds() - self._taken > STALE * self._every:
            return None
        return self._kept[-1]

    def history(self, after_us: int | None = None) -> Sequence[Sample]:
        """Return the samples that are kept, oldest first; those strictly after a moment if one is given."""
        return [sample for sample in self._kept if after_us is None or sample.at_us > after_us]

    def _poll(self) -> None:
        self._next = self._clock.callLater(self._every, self._poll)
        Deferred.fromCoroutine(self._take()).addErrback(self._broke)

    async def _take(self) -> None:
        at_us, taken = microseconds(self._wall()), self._clock.seconds()
        host_asked, gpus_asked = self._host.ask(), self._gpus.ask()  # side by side
        host, gpus = await host_asked, await gpus_asked or ()
        if host is not None or gpus:
            self._kept.append(Sample(at_us=at_us, host=host, gpus=gpus))
            self._taken = taken

    def _broke(self, failure: Failure) -> None:
        self._log.failure("telemetry.sample_failed", failure)
