from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import Clock
from zope.interface import implementer

from llamaswap.telemetry.sensing import SensingReactor, make_hardware, make_sampler


@implementer(SensingReactor, IReactorTime)
class Reactor(Clock):
    """A reactor in memory that hears from no thread."""

    def callFromThread(self, callable: Callable[..., Any], *args: object, **kwargs: object) -> None:  # noqa: A002 - as Twisted has it
        raise AssertionError("nothing was started")


def test_what_is_put_together_waits_to_be_started() -> None:
    reactor = Reactor()
    sampler = make_sampler(reactor, lambda: 0.0, 5.0)
    make_hardware(reactor, lambda: 0.0)

    assert reactor.getDelayedCalls() == []
    assert sampler.history() == []
    assert sampler.latest() is None
