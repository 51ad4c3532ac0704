"""A server under any sequence of events keeps its promises."""

from __future__ import annotations

from contextlib import ExitStack

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from twisted.logger import capturedLogs
from typing_extensions import override

from llamaswap.processes.lifecycle import State
from support.processes_fakes import Outcome, Rig

LONG_ENOUGH = 60.0  # seconds, for any grace or limit here to be over


class ServerWalk(RuleBasedStateMachine):
    """Anything may happen at any time; nobody is forgotten, told twice, or run twice."""

    @initialize(cmd_stop=st.sampled_from(["", "stop it"]), ttl=st.sampled_from([0, 3]))
    def begin(self, cmd_stop: str, ttl: int) -> None:
        self.ending = ExitStack()
        self.logged = self.ending.enter_context(capturedLogs())
        self.rig = Rig(cmd_stop=cmd_stop, ttl=ttl, unload_timeout=4, health_check_timeout=8)
        self.outcomes: list[Outcome] = []
        self.uses = 0

    @rule()
    def somebody_needs_it(self) -> None:
        self.outcomes.append(Outcome(self.rig.server.ensure_ready()))

    @rule(data=st.data())
    def somebody_leaves(self, data: st.DataObject) -> None:
        if self.outcomes:
            data.draw(st.sampled_from(self.outcomes)).deferred.cancel()

    @rule(grace=st.sampled_from([None, 0.0, 1.0, 30.0]))
    def it_is_stopped(self, grace: float | None) -> None:
        self.outcomes.append(Outcome(self.rig.server.stop(grace)))

    @rule(always=st.integers(0, 9))
    def it_is_shut_down(self, always: int) -> None:
        if always == 0:
            self.outcomes.append(Outcome(self.rig.server.shutdown(2.0)))

    @rule()
    def it_answers_200(self) -> None:
        self.rig.becomes_healthy()

    @rule()
    def it_answers_503(self) -> None:
        self.rig.prober.answers(503)

    @rule(code=st.integers(0, 1), data=st.data())
    def a_child_exits(self, code: int, data: st.DataObject) -> None:
        if self.rig.children.alive:
            data.draw(st.sampled_from(self.rig.children.alive)).exits(code)

    @rule(seconds=st.sampled_from([0.0, 0.1, 1.0, 3.0, 10.0]))
    def time_passes(self, seconds: float) -> None:
        self.rig.clock.advance(seconds)

    @rule()
    def a_use_begins(self) -> None:
        self.uses += 1
        self.rig.server.begin_use()

    @precondition(lambda self: self.uses > 0)
    @rule()
    def a_use_ends(self) -> None:
        self.uses -= 1
        self.rig.server.end_use()

    @rule(refusal=st.sampled_from(["", "failed to start command: no room"]))
    def room_comes_and_goes(self, refusal: str) -> None:
        self.rig.children.refusal = refusal

    @invariant()
    def nobody_is_told_twice(self) -> None:
        assert all(outcome.times <= 1 for outcome in self.outcomes)

    @invariant()
    def there_is_at_most_one_server(self) -> None:
        serving = [child for child in self.rig.children.alive if child.order.argv == ("serve",)]
        assert len(serving) <= 1
        if self.rig.server.state is State.STOPPED:
            assert self.rig.children.alive == []

    @invariant()
    def the_changes_are_a_walk_through_the_states(self) -> None:
        news = [new for _, new in self.rig.changes]
        assert [old for old, _ in self.rig.changes] == [State.STOPPED, *news][: len(news)]
        assert self.rig.server.state == (news[-1] if news else State.STOPPED)

    @invariant()
    def whoever_waits_waits_for_something(self) -> None:
        if any(outcome.pending for outcome in self.outcomes):
            assert self.rig.children.alive or self.rig.clock.getDelayedCalls()

    @override
    def teardown(self) -> None:
        """In the end everybody has had an answer, and nothing is left running."""
        if not hasattr(self, "rig"):
            return
        with self.ending:
            self.everything_ends()
        # Of ours: what other tests have left behind may be collected, and complain, just now.
        ours = [event for event in self.logged if event["log_namespace"].startswith("llamaswap.processes")]
        assert [event for event in ours if "log_failure" in event] == []

    def everything_ends(self) -> None:
        end = Outcome(self.rig.server.shutdown(1.0))
        for _ in range(3):
            self.rig.clock.advance(LONG_ENOUGH)
            for child in self.rig.children.alive:
                assert child.signals[-1] == "KILL"
                child.is_killed()
        assert end.succeeded
        assert all(outcome.times == 1 for outcome in self.outcomes)
        assert self.rig.clock.getDelayedCalls() == []
        assert self.rig.prober.questions == 0


TestServerWalk = ServerWalk.TestCase
TestServerWalk.settings = settings(max_examples=400, stateful_step_count=40, deadline=None)
