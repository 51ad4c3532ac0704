"""A machine that samplers watch, in a test's hands."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.task import Clock

from llamaswap.telemetry.errand import Errand
from llamaswap.telemetry.gpu import GpuSample
from llamaswap.telemetry.host import HostSample
from llamaswap.telemetry.sampler import Sampler
from support.telemetry_sources import GPU, HOST, FakeSource, Threads


class Machine:
    """One processor and one graphics processor, which answer at once."""

    def __init__(self) -> None:
        self.threads = Threads()
        self.samplers: list[Sampler] = []  # all that were made

    def sampler(self, clock: Clock, wall: Callable[[], float], every: float = 5.0) -> Sampler:
        """Make a sampler that has not started."""
        host, gpus = FakeSource[HostSample](HOST), FakeSource[tuple[GpuSample, ...]]((GPU,))
        made = Sampler(
            Errand("host", host.open, run=self.threads.run, clock=clock, patience=4.0),
            Errand("gpus", gpus.open, run=self.threads.run, clock=clock, patience=4.0),
            clock=clock,
            wall=wall,
            every=every,
        )
        self.samplers.append(made)
        return made
