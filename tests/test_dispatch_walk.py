"""Any order of events leaves the dispatcher, its servers and its callers agreeing on what is going on."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from twisted.internet.defer import Deferred
from typing_extensions import override

from llamaswap.config.model import GroupConfig, SchedulerName, SerialSettings
from llamaswap.processes.lifecycle import State
from llamaswap.scheduling.vocabulary import Band
from support.dispatch_rig import Caller, DispatchRig
from support.processes_fakes import a_model

RIVALS = ("a", "b", "c")
MODELS = (*RIVALS, "embed")
GROUPS = (
    GroupConfig(id="big", members=RIVALS),
    GroupConfig(id="small", persistent=True, exclusive=False, swap=False, members=("embed",)),
)

some_model = st.sampled_from(MODELS)
some_place = st.integers(min_value=0, max_value=30)


class Walk(RuleBasedStateMachine):
    """Clients, children, operators and time, in any order."""

    use = SchedulerName.SERIAL
    serial = SerialSettings()

    @initialize()
    def begin(self) -> None:
        """Two of the models expire, one needs no health check, one stops by a command."""
        models = (
            a_model(id="a", ttl=7),
            a_model(id="b", health_check_timeout=15),
            a_model(id="c", check_endpoint="none"),
            a_model(id="embed", ttl=3),
        )
        self.rig = DispatchRig(*models, use=self.use, groups=GROUPS, serial=self.serial)
        self.callers: list[Caller] = []
        self.unloads: list[Deferred[None]] = []
        self.closed = False

    @rule(model=some_model, priority=st.integers(-150, 150), looks_only=st.booleans())
    def arrive(self, model: str, priority: int, looks_only: bool) -> None:
        """A client asks."""
        self.callers.append(self.rig.call(model, priority, looks_only=looks_only))

    @rule(model=some_model)
    def arrive_in_haste(self, model: str) -> None:
        """A client asks whose job ends as soon as it begins."""
        self.callers.append(self.rig.call(model, then=self._in_haste))

    @rule(place=some_place)
    def leave(self, place: int) -> None:
        """A client hangs up."""
        present = [caller for caller in self.callers if not caller.outcomes]
        if present:
            present[place % len(present)].leave()

    @rule()
    def all_leave(self) -> None:
        """Everybody who waits hangs up."""
        for caller in self.callers:
            if caller.waiting:
                caller.leave()

    @rule(place=some_place)
    def finish(self, place: int) -> None:
        """An upstream has answered."""
        serving = [caller for caller in self.callers if caller.serving]
        if serving:
            serving[place % len(serving)].finish()

    @rule(model=some_model)
    def probe_succeeds(self, model: str) -> None:
        """A child says that it is ready."""
        self.rig.becomes_ready(model)

    @rule(model=some_model)
    def child_goes(self, model: str) -> None:
        """A child that was asked to stop does so."""
        self.rig.goes(model)

    @rule(model=some_model, code=st.integers(0, 1))
    def child_dies(self, model: str, code: int) -> None:
        """A child ends by itself; the jobs it was answering break off."""
        if self.rig.children[model].alive:
            self.rig.child(model).exits(code)
            self._cut(model)

    @rule(models=st.sets(some_model, min_size=1))
    def unload(self, models: set[str]) -> None:
        """An operator unloads."""
        self.unloads.append(Deferred.fromCoroutine(self.rig.dispatcher.unload(frozenset(models))))

    @rule(seconds=st.floats(0.001, 12.0))
    def wait(self, seconds: float) -> None:
        """Time passes; whoever ignores its signals is killed in the end."""
        self.rig.clock.advance(seconds)
        for children in self.rig.children.values():
            for child in children.alive:
                if "KILL" in child.signals:
                    child.is_killed()

    @precondition(lambda self: not self.closed and len(self.callers) > 6)
    @rule(sure=st.integers(0, 9))
    def close(self, sure: int) -> None:
        """The daemon is told to stop, now and then."""
        if sure == 0:
            self.closed = True
            self.rig.dispatcher.close()

    @invariant()
    def everybody_is_somewhere(self) -> None:
        """Each caller waits, is served, or had its one outcome."""
        for caller in self.callers:
            assert caller.outcomes <= 1
            answers = (caller.done, caller.left, caller.refusal is not None, caller.abandoned is not None)
            assert sum(answers) == caller.outcomes
            assert len(caller.verdicts) <= 1

    @invariant()
    def counters_tell_the_truth(self) -> None:
        """What was counted is what the callers saw."""
        tally = self.rig.tally
        assert len(tally.verdicts) == sum(len(caller.verdicts) for caller in self.callers)
        gone_while_waiting = [c for c in self.callers if c.abandoned and c.abandoned.verdict is None]
        assert len(tally.abandoned_in) == len(gone_while_waiting)
        assert sum(server.report().uses for server in self.rig.fleet.values()) == sum(
            caller.serving for caller in self.callers
        )
        assert sum(server.loads for server in self.rig.fleet.values()) >= len(tally.ended)

    @invariant()
    def the_view_agrees(self) -> None:
        """The scheduler knows exactly those who wait and those who were dispatched."""
        view = self.rig.dispatcher.view()
        waiting = [caller for caller in self.callers if caller.waiting and not caller.verdicts]
        assert sum(band.depth for band in view.bands.values()) == len(waiting)
        jobs = [caller for caller in self.callers if caller.verdicts and not caller.outcomes]
        assert len(view.jobs) == len(jobs)
        if waiting:
            assert jobs, "the box is free and somebody waits"

    @invariant()
    def rivals_do_not_meet(self) -> None:
        """At most one of the models that evict each other has a child."""
        assert len([model for model in self.rig.alive() if model in RIVALS]) <= 1

    @invariant()
    def nobody_waits_for_nothing(self) -> None:
        """A job without a lease is about to get one: something loads or something stops."""
        loading = [caller for caller in self.callers if caller.verdicts and caller.waiting]
        for caller in loading:
            states = {self.rig.state(model) for model in MODELS}
            assert states & {State.STARTING, State.STOPPING}
            assert self.rig.dispatcher.wanted(caller.model)

    @override
    def teardown(self) -> None:
        """Whatever happened, all of it comes to an end."""
        if not hasattr(self, "rig"):
            return
        for _ in range(4 * len(self.callers) + 8):
            for caller in self.callers:
                if caller.serving:
                    caller.finish()
            for model in MODELS:
                self.rig.goes(model)
                self.rig.becomes_ready(model)
            self.rig.clock.advance(1.0)
        assert all(caller.outcomes == 1 for caller in self.callers)
        assert all(unload.called for unload in self.unloads)
        assert self.rig.dispatcher.view().jobs == ()
        assert self.rig.dispatcher.when_idle().called
        self.rig.stop_fleet()
        assert self.rig.clock.getDelayedCalls() == []

    def _in_haste(self, caller: Caller) -> None:
        if caller.lease is not None:
            caller.finish()

    def _cut(self, model: str) -> None:
        for caller in self.callers:
            if caller.serving and caller.model == model:
                caller.finish()


class OneJob(Walk):
    """What the serial scheduler promises besides."""

    @invariant()
    def one_job_at_a_time(self) -> None:
        """No two leases are held but by calls that only look."""
        jobs = [caller for caller in self.callers if caller.verdicts and not caller.outcomes]
        assert len(jobs) <= 1


class Rearranged(OneJob):
    """The same, with limits of waiting, and people who move, send away and hold up those who wait."""

    serial = SerialSettings(
        swap_budget=5.0, max_wait={"interactive": 4.0, "batch": 20.0}, max_queue={"normal": 3, "batch": 5}
    )

    @rule(model=some_model, priority=st.integers(-150, 150), max_wait=st.sampled_from([0.0, 1.0, 9.0]))
    def arrive_in_a_hurry(self, model: str, priority: int, max_wait: float) -> None:
        """A client asks that does not want to wait for long."""
        self.callers.append(self.rig.call(model, priority, max_wait=max_wait))

    @rule(place=some_place, priority=st.sampled_from([-100, 0, 7, 100]))
    def reprioritise(self, place: int, priority: int) -> None:
        """Somebody moves one who waits."""
        number = self._somebody(place)
        if number is not None:
            self.rig.dispatcher.queueing.reprioritise(number, priority)

    @rule(place=some_place)
    def send_away(self, place: int) -> None:
        """Somebody sends one who waits away."""
        number = self._somebody(place)
        if number is not None:
            self.rig.dispatcher.queueing.cancel(number)

    @rule(bands=st.sets(st.sampled_from(list(Band)), min_size=1))
    def pause(self, bands: set[Band]) -> None:
        """Somebody holds bands up."""
        self.rig.dispatcher.queueing.pause(frozenset(bands))

    @rule(bands=st.sets(st.sampled_from(list(Band)), min_size=1))
    def resume(self, bands: set[Band]) -> None:
        """Somebody lets them go on."""
        self.rig.dispatcher.queueing.resume(frozenset(bands))

    @rule()
    def reload(self) -> None:
        """The configuration is read again."""
        if not self.closed:
            self.rig.reload(self.serial)

    @invariant()
    @override
    def the_view_agrees(self) -> None:
        """The queue shows exactly those who wait; nobody who may go waits for a free box."""
        waiting = [caller for caller in self.callers if caller.waiting and not caller.verdicts]
        page = self.rig.dispatcher.queueing.queue()
        assert page.waiting == len(page.tickets) == len(waiting)
        jobs = [caller for caller in self.callers if caller.verdicts and not caller.outcomes]
        assert len(page.jobs) == len(jobs)
        if any(not row.paused for row in page.tickets):
            assert jobs, "the box is free and somebody who may go waits"
        for row in page.tickets:
            if not row.paused and not any(other.paused for other in page.tickets):
                ahead = self.rig.dispatcher.queueing.explain(row.ticket.number).explanation.ahead_total
                assert ahead == row.position - 1
            assert row.max_wait is None or row.waited <= row.max_wait

    @invariant()
    def the_box_is_told_of_once(self) -> None:
        """Each state of the box is another one than the state before."""
        states = self.rig.tally.box_states
        assert all(one != another for one, another in pairwise(states))

    @override
    def teardown(self) -> None:
        """Everybody may go on in the end."""
        if hasattr(self, "rig"):
            self.rig.dispatcher.queueing.resume(frozenset(Band))
        super().teardown()

    def _somebody(self, place: int) -> int | None:
        tickets = self.rig.dispatcher.queueing.queue().tickets
        return tickets[place % len(tickets)].ticket.number if tickets else None


class Fifo(Walk):
    """The same walk under llama-swap's own algorithm."""

    use = SchedulerName.FIFO

    @invariant()
    @override
    def the_view_agrees(self) -> None:
        """Under fifo somebody may wait for a load of another although nothing of it runs."""


SHORT = settings(
    max_examples=200, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
)
TestOneJob = OneJob.TestCase
TestOneJob.settings = SHORT
TestRearranged = Rearranged.TestCase
TestRearranged.settings = settings(SHORT, max_examples=60)
TestFifo = Fifo.TestCase
TestFifo.settings = SHORT
