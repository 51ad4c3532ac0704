from __future__ import annotations

from typing import TypeVar

from twisted.internet.task import Clock

from llamaswap.telemetry.errand import Errand
from llamaswap.telemetry.gpu import GpuSample
from llamaswap.telemetry.host import HostSample
from llamaswap.telemetry.sampler import Sampler
from llamaswap.telemetry.sources import SourceFailed
from support.telemetry_sources import GPU, HOST, FakeSource, Threads

WALL = 1_800_000_000

T = TypeVar("T")


class Lab:
    """A sampler with a machine and two graphics processors in a test's hands."""

    def __init__(self, *gpus: tuple[GpuSample, ...] | Exception, every: float = 5.0) -> None:
        self.clock = Clock()
        self.host_threads, self.gpu_threads = Threads(), Threads()
        self.host = FakeSource[HostSample](HOST)
        self.gpus = FakeSource[tuple[GpuSample, ...]](*(gpus or ((GPU, GPU),)))
        self.sampler = Sampler(
            self._errand(self.host, self.host_threads),
            self._errand(self.gpus, self.gpu_threads),
            clock=self.clock,
            wall=lambda: WALL + self.clock.seconds(),
            every=every,
        )
        self.sampler.start()

    def _errand(self, source: FakeSource[T], threads: Threads) -> Errand[T]:
        return Errand("source", source.open, run=threads.run, clock=self.clock, patience=4.0)

    def wait(self, polls: int) -> None:
        """Let so many polls go by."""
        for _ in range(polls):
            self.clock.advance(5.0)


def test_the_first_sample_comes_one_interval_after_the_start() -> None:
    lab = Lab()
    lab.clock.advance(4.9)
    assert lab.sampler.latest() is None
    assert lab.sampler.history() == []

    lab.clock.advance(0.1)

    (sample,) = lab.sampler.history()
    assert sample == lab.sampler.latest()
    assert (sample.at_us, sample.host, sample.gpus) == ((WALL + 5) * 1_000_000, HOST, (GPU, GPU))


def test_an_hour_is_kept_however_many_processors_each_sample_has() -> None:
    lab = Lab()
    lab.wait(800)

    history = lab.sampler.history()
    assert len(history) == 720
    assert [sample.at_us for sample in history] == sorted(sample.at_us for sample in history)
    assert all(len(sample.gpus) == 2 for sample in history)


def test_only_what_came_after_a_moment_is_returned_when_asked_so() -> None:
    lab = Lab()
    lab.wait(3)
    first, second, third = lab.sampler.history()

    assert lab.sampler.history(first.at_us) == [second, third]
    assert lab.sampler.history(third.at_us) == []


def test_a_graphics_driver_that_hangs_stops_nothing_and_brings_nothing_stale() -> None:
    lab = Lab()
    lab.wait(1)
    lab.gpu_threads.hangs = True
    lab.wait(20)

    history = lab.sampler.history()
    assert len(history) == 21
    assert all(sample.host == HOST for sample in history)
    assert all(sample.gpus == () for sample in history[1:])
    assert lab.gpu_threads.started == 3


def test_a_driver_that_failed_once_comes_back() -> None:
    lab = Lab((GPU,), SourceFailed("GPU is lost"), (GPU,))
    lab.wait(10)

    seen = [bool(sample.gpus) for sample in lab.sampler.history()]
    assert seen[0] is False
    assert seen[-1] is True


def test_a_poll_that_brings_nothing_leaves_no_sample() -> None:
    lab = Lab()
    lab.host_threads.hangs = lab.gpu_threads.hangs = True
    lab.wait(10)

    assert lab.sampler.history() == []


def test_the_latest_sample_is_forgotten_as_such_when_nothing_fresh_comes() -> None:
    lab = Lab()
    lab.wait(1)
    lab.host_threads.hangs = lab.gpu_threads.hangs = True
    lab.wait(3)
    assert lab.sampler.latest() is not None

    lab.wait(1)

    assert lab.sampler.latest() is None
    assert len(lab.sampler.history()) == 1


def test_a_sampler_that_was_stopped_has_no_timer_and_keeps_what_it_had() -> None:
    lab = Lab()
    lab.wait(2)
    lab.sampler.stop()

    assert lab.clock.getDelayedCalls() == []
    assert (lab.host.closed, lab.gpus.closed) == (1, 1)
    assert len(lab.sampler.history()) == 2
