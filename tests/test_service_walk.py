"""The whole machine, in any order of events: what has to hold holds after each of them.

Clients, models' servers, children, operators and both clocks do what they like; the daemon is whole, but
for its sockets and processes.  With `LLAMASWAP_SOAK=1` many more walks are made.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from typing_extensions import override

from support.machine import House
from support.machine_parts import MODELS, Line, Plan, Saying, faults_of
from support.machine_truth import TRUTHS

SAYINGS: tuple[Saying, ...] = ("whole", "begun", "ended", "nonsense", "dead")
MOMENTS = (0.01, 0.5, 3.0, 11.0, 700.0)  # seconds

some_model = st.sampled_from(["a", "b", "c", "any", "ghost"])
some_place = st.integers(min_value=0, max_value=20)
fleets = st.dictionaries(st.sampled_from(sorted(MODELS)), st.integers(1, 2), min_size=1)
plans = st.builds(
    Plan,
    models=fleets,
    scheduler=st.sampled_from(["serial", "fifo"]),
    together=st.booleans(),
    preload=st.sampled_from([False, False, False, True]),
)


@pytest.fixture(autouse=True)
def little_to_look_through() -> Iterator[None]:
    """Each walk looks for garbage twice; what was there before is none."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


class Walk(RuleBasedStateMachine):
    """One service in a busy place with a busy operator."""

    failed = False  # whether what has to hold does not: nobody needs to know how that ends

    @initialize(plan=plans)
    def begin(self, plan: Plan) -> None:
        """Nobody is there yet."""
        self.house = House(plan)

    # --- clients ---

    @rule(
        model=some_model,
        priority=st.sampled_from(["", "batch", "interactive", "7", "nonsense"]),
        stream=st.booleans(),
    )
    def chat(self, model: str, priority: str, stream: bool) -> None:
        """A client wants a model to work."""
        self.house.chats(model, priority, stream=stream)

    @rule(models=st.lists(some_model, min_size=2, max_size=6))
    def crowd(self, models: list[str]) -> None:
        """Several come at once."""
        for model in models:
            self.house.chats(model)

    @rule(model=some_model)
    def begin_to_send(self, model: str) -> None:
        """A request comes, but for its last byte."""
        self.house.begins_to_send(model)

    @rule()
    def send_the_rest(self) -> None:
        """The last bytes come."""
        for guest in self.house.guests:
            self.house.sends_the_rest(guest)

    @rule(model=some_model)
    def look(self, model: str) -> None:
        """A client only looks at a page of a model."""
        self.house.looks(f"GET /upstream/{model}/slots")

    @rule(place=some_place, rudely=st.booleans())
    def leave(self, place: int, rudely: bool) -> None:
        """A client hangs up, answered or not."""
        staying = [guest for guest in self.house.guests if not guest.left]
        if staying:
            self.house.leaves(staying[-1 - place % len(staying)], rudely=rudely)

    @rule()
    def all_leave(self) -> None:
        """Everybody hangs up."""
        for guest in self.house.guests:
            if not guest.left:
                self.house.leaves(guest)

    # --- models' servers ---

    @precondition(lambda self: self.house.wanted_lines())
    @rule(refused=st.booleans())
    def connect(self, refused: bool) -> None:
        """A model's server takes the connection that it is asked for, or does not."""
        self.house.connects(refused=refused)

    @precondition(lambda self: self.house.asked())
    @rule(place=some_place, what=st.sampled_from(SAYINGS))
    def answer(self, place: int, what: Saying) -> None:
        """A model's server says something."""
        asked: list[Line] = self.house.asked()
        self.house.says(asked[place % len(asked)], what)

    @rule(status=st.sampled_from([200, 200, 503, None]))
    def health(self, status: int | None) -> None:
        """The children that start are ready, or not yet."""
        self.house.health(status)

    # --- children ---

    @rule()
    def stopped_ones_end(self) -> None:
        """Children that were told to end do so."""
        self.house.stopped_ones_end()

    @precondition(lambda self: self.house.rig.children.alive)
    @rule(place=some_place)
    def become_deaf(self, place: int) -> None:
        """A child heeds no polite signal any more."""
        alive = self.house.rig.children.alive
        self.house.deaf.add(alive[place % len(alive)])

    @precondition(lambda self: self.house.rig.children.alive)
    @rule(place=some_place, code=st.integers(0, 1), wires_first=st.booleans())
    def crash(self, place: int, code: int, wires_first: bool) -> None:
        """A child ends by itself, and with it whatever it was answering."""
        alive = self.house.rig.children.alive
        self.house.ends(alive[place % len(alive)], code, wires_first=wires_first)

    @rule(why=st.sampled_from(["", "", "no such file"]))
    def nothing_starts(self, why: str) -> None:
        """No child can be started from now on, or all can again."""
        self.house.rig.children.refusal = why

    # --- operators and clocks ---

    @rule(plan=plans)
    def reload(self, plan: Plan) -> None:
        """The operator has changed something."""
        self.house.reload(plan)

    @rule(place=some_place)
    def cancel(self, place: int) -> None:
        """Somebody ends a request by its id."""
        self.house.looks(f"POST /api/inflight/{place}/cancel")

    @rule(path=st.sampled_from(["GET /unload", *(f"POST /api/models/unload/{name}" for name in MODELS)]))
    def unload(self, path: str) -> None:
        """An operator stops everything, or one model."""
        self.house.looks(path)

    @rule(seconds=st.sampled_from(MOMENTS), stuck=st.booleans())
    def wait(self, seconds: float, stuck: bool) -> None:
        """Time passes; a killed process is gone soon, or hangs in the kernel for a while."""
        self.house.passes(seconds)
        if not stuck:
            self.house.killed_ones_end()

    @rule(seconds=st.sampled_from([-86_400.0, -1.0, 3600.0]))
    def wall_jumps(self, seconds: float) -> None:
        """Somebody sets the clock on the wall."""
        self.house.wall_jumps(seconds)

    @rule(rounds=st.integers(1, 4), then=st.sampled_from((0.0, *MOMENTS)))
    def go_well(self, rounds: int, then: float) -> None:
        """For a while everybody does what he should; then nothing happens for some time."""
        for _ in range(rounds):
            self.house.serves_a_round()
        self.house.passes(then)

    # --- what holds ---

    @invariant()
    def what_has_to_hold_holds(self) -> None:
        """After each step."""
        if hasattr(self, "house"):
            wrong = [f"{truth.__name__}: {found}" for truth in TRUTHS if (found := truth(self.house))]
            self.failed = self.failed or bool(wrong)
            assert not wrong, wrong

    @override
    def teardown(self) -> None:
        """In the end all is well, unless it was not before."""
        if not hasattr(self, "house"):
            return
        with self.house:
            if not self.failed:
                self.all_ends_well()

    def all_ends_well(self) -> None:
        """All are answered, and nothing of what is no longer configured runs."""
        house = self.house
        house.rig.children.refusal = ""
        house.deaf.clear()
        for guest in house.guests:
            house.sends_the_rest(guest)
        self.come_to_an_end()
        for guest in house.guests:
            if not guest.left:
                self.check_answered(list(faults_of(guest)))
        assert len(house.rig.rows) == house.chats_due()
        assert len(house.rig.service._around.inflight) == 0
        house.rig.finish_stopping()
        assert house.rig.children.alive == []
        assert house.rig.reactor.getDelayedCalls() == []

    def come_to_an_end(self) -> None:
        """All servers answer; then only what is configured runs, as it is configured."""
        house, engine = self.house, self.house.rig.service.engine
        for _ in range(3 * (len(house.guests) + house.preloads) + 8):
            house.serves_a_round()
            self.what_has_to_hold_holds()
            if house.is_idle():
                break
        house.passes(0.3)
        house.serves_a_round()
        assert engine.view().jobs == ()
        assert engine.fleet.keys() == house.plan.models.keys()
        assert set(house.rig.running) <= {f"{name} v{at}" for name, at in house.plan.models.items()}

    def check_answered(self, faults: list[str]) -> None:
        """One whole answer, or one that does not look whole."""
        assert faults == []


class StoppedWalk(Walk):
    """The same, but the service is told to stop in the middle of it."""

    @override
    def come_to_an_end(self) -> None:
        """Nobody answers any more; children end when they are told to, some only when they are killed."""
        rig = self.house.rig
        rig.stop()
        self.house.stopped_ones_end()
        rig.reactor.pump([1.0] * 35)
        self.house.stopped_ones_end()
        rig.finish_stopping()
        rig.reactor.advance(1.0)

    @override
    def check_answered(self, faults: list[str]) -> None:
        """Whoever was still with a server when the time was over is cut off, without a word if need be."""
        assert faults in ([], ["was never answered"])


PARTS = range(10 if os.environ.get("LLAMASWAP_SOAK") == "1" else 1)
"""Ten times as many walks in a soak, but not in one go: what hypothesis knows of them slows down each."""


def so_many(walks: int) -> settings:
    """So many of them, of forty steps each."""
    return settings(
        max_examples=walks,
        stateful_step_count=40,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.parametrize("part", PARTS)
def test_what_has_to_hold_holds_after_each_step_and_all_ends_well(part: int) -> None:
    run_state_machine_as_test(Walk, settings=so_many(120))


@pytest.mark.parametrize("part", PARTS)
def test_a_service_that_is_stopped_in_the_middle_leaves_nothing_behind(part: int) -> None:
    run_state_machine_as_test(StoppedWalk, settings=so_many(30))
