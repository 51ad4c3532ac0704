"""Put the samplers of a real machine together: psutil, then NVML, then AMD's driver.

The only module here that names them all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from twisted.internet.interfaces import IReactorFromThreads, IReactorTime

from llamaswap.telemetry.amd import AmdSource
from llamaswap.telemetry.errand import Errand, runner
from llamaswap.telemetry.gpu import GpuSample, GpuSource, open_first
from llamaswap.telemetry.hardware import Hardware, inspect
from llamaswap.telemetry.host import HostSample, HostSource
from llamaswap.telemetry.nvidia import open_nvml
from llamaswap.telemetry.sampler import PATIENCE, Sampler


class SensingReactor(IReactorFromThreads, IReactorTime):
    """What it takes to ask the machine now and then, on threads."""


def open_gpus() -> GpuSource:
    """Open the graphics processors of this machine; may block.

    Raises:
        SourceAbsent: there are none.
        SourceFailed: their driver is in trouble.
    """
    return open_first((open_nvml, AmdSource))


def make_sampler(reactor: SensingReactor, wall: Callable[[], float], every: float) -> Sampler:
    """Return the sampler of this machine, not started yet.

    Args:
        every: seconds between two polls.
    """
    run, patience = runner(reactor), every * PATIENCE
    host: Errand[HostSample] = Errand("host", HostSource, run=run, clock=reactor, patience=patience)
    gpus: Errand[tuple[GpuSample, ...]] = Errand("gpu", open_gpus, run=run, clock=reactor, patience=patience)
    return Sampler(host, gpus, clock=reactor, wall=wall, every=every)


def make_hardware(reactor: SensingReactor, wall: Callable[[], float]) -> Hardware:
    """Return the inspection of this machine, not started yet."""
    return Hardware(partial(inspect, open_gpus), run=runner(reactor), clock=reactor, wall=wall)
