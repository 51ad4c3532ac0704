"""How long jobs and servers get at the end."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs, formatEvent

from llamaswap.ending import OVERTIME, Ending
from support.dispatch_rig import nothing_goes_wrong
from support.web_daemon import WebDaemon
from support.web_talk import Talk

BUDGET = 30.0
GRACE = 2.0


class Scene:
    """A daemon whose model answers a request, and the end of its engine."""

    def __init__(self) -> None:
        self.daemon = WebDaemon()
        self.upstream = self.daemon.warm("a")
        self.running: Talk = self.daemon.chat("a")
        self.ending = Ending(self.daemon.engine, self.daemon.reactor, budget=BUDGET, grace=GRACE)
        self.over: Deferred[None] | None = None

    @property
    def signals(self) -> list[str]:
        """What the model's server was told."""
        return self.daemon.children.started[0].signals

    def begins(self) -> None:
        """The end begins."""
        self.ending.begin()
        self.over = Deferred.fromCoroutine(self._end())

    def passes(self, seconds: float) -> None:
        """Time passes."""
        self.daemon.reactor.advance(seconds)

    def goes(self) -> None:
        """The server ends."""
        self.daemon.children.started[0].exits()
        assert self.over is not None
        assert self.over.called

    async def _end(self) -> None:
        await self.ending.jobs()
        await self.ending.servers()


def test_a_job_has_the_whole_budget_and_its_server_at_least_the_grace() -> None:
    with nothing_goes_wrong():
        scene = Scene()
        scene.begins()

        scene.passes(BUDGET - 0.1)
        assert scene.signals == []
        scene.passes(0.1)
        assert scene.signals == ["TERM"]
        scene.passes(GRACE - 0.1)
        assert scene.signals == ["TERM"]
        scene.passes(0.1)
        assert scene.signals == ["TERM", "KILL"]
        scene.goes()
    assert not scene.ending.in_a_hurry


def test_a_server_has_what_the_job_has_left_of_the_budget() -> None:
    scene = Scene()
    scene.begins()
    scene.passes(10.0)
    scene.upstream.answers()

    scene.passes(BUDGET - 10.0 - 0.1)
    assert scene.signals == ["TERM"]
    scene.passes(0.1)
    assert scene.signals == ["TERM", "KILL"]
    scene.goes()


def test_a_hurry_cuts_the_job_and_leaves_its_server_the_grace() -> None:
    scene = Scene()
    scene.begins()
    scene.passes(5.0)
    assert scene.signals == []

    scene.ending.hurry()

    assert scene.signals == ["TERM"]
    scene.passes(GRACE - 0.1)
    assert scene.signals == ["TERM"]
    scene.passes(0.1)
    assert scene.signals == ["TERM", "KILL"]
    scene.goes()
    assert scene.ending.in_a_hurry


def test_a_hurry_that_comes_while_servers_end_shortens_what_they_have() -> None:
    scene = Scene()
    scene.begins()
    scene.upstream.answers()
    scene.passes(5.0)
    assert scene.signals == ["TERM"]

    scene.ending.hurry()

    scene.passes(GRACE)
    assert scene.signals == ["TERM", "KILL"]
    scene.goes()


def test_a_second_hurry_leaves_a_server_no_time_at_all() -> None:
    scene = Scene()
    scene.begins()
    scene.ending.hurry()
    assert scene.signals == ["TERM"]

    scene.ending.hurry()

    scene.passes(0.0)
    assert scene.signals == ["TERM", "KILL"]
    scene.goes()


def test_a_hurry_before_the_end_holds_for_it() -> None:
    scene = Scene()

    scene.ending.hurry()
    assert scene.signals == []
    scene.begins()

    assert scene.signals == ["TERM"]
    scene.passes(GRACE)
    assert scene.signals == ["TERM", "KILL"]
    scene.goes()


def test_a_server_that_no_signal_ends_is_left_behind_after_some_time() -> None:
    scene = Scene()
    scene.begins()
    scene.upstream.answers()
    scene.passes(BUDGET)
    assert scene.signals == ["TERM", "KILL"]

    with capturedLogs() as said:
        scene.passes(OVERTIME)

    assert scene.over is not None
    assert scene.over.called
    pid = scene.daemon.children.started[0].pid
    assert f"service.server_left_behind model=a pid={pid}" in map(formatEvent, said)


def test_in_a_hurry_it_is_left_behind_earlier() -> None:
    scene = Scene()
    scene.begins()
    scene.upstream.answers()
    scene.ending.hurry()
    scene.passes(GRACE)
    assert scene.signals == ["TERM", "KILL"]

    scene.passes(OVERTIME)

    assert scene.over is not None
    assert scene.over.called
