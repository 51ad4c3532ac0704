"""What every walk of the whole machine shares: clients that leave, servers, clocks, and what holds."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from typing_extensions import override

from support.machine import House
from support.machine_parts import Line, Saying, faults_of
from support.machine_truth import TRUTHS

SAYINGS: tuple[Saying, ...] = ("whole", "begun", "ended", "nonsense", "dead")
MOMENTS = (0.01, 0.5, 3.0, 11.0, 700.0)  # seconds

some_place = st.integers(min_value=0, max_value=20)


class Place(RuleBasedStateMachine):
    """One service in a busy place; who comes, and what an operator does, is added by a walk."""

    house: House
    failed = False  # whether what has to hold does not: nobody needs to know how that ends

    # --- clients ---

    @rule(place=some_place, rudely=st.booleans())
    def leave(self, place: int, rudely: bool) -> None:
        """A client hangs up, answered or not."""
        staying = [guest for guest in self.house.guests if not guest.left]
        if staying:
            self.house.leaves(staying[-1 - place % len(staying)], rudely=rudely)

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

    # --- operators and clocks ---

    @rule(place=some_place)
    def cancel(self, place: int) -> None:
        """Somebody ends a request by its id."""
        self.house.looks(f"POST /api/inflight/{place}/cancel")

    @rule(seconds=st.sampled_from(MOMENTS), stuck=st.booleans())
    def wait(self, seconds: float, stuck: bool) -> None:
        """Time passes; a killed process is gone soon, or hangs in the kernel for a while."""
        self.house.passes(seconds)
        if not stuck:
            self.house.killed_ones_end()

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
            wrong = self.wrong()
            self.failed = self.failed or bool(wrong)
            assert not wrong, wrong

    def wrong(self) -> list[str]:
        """What does not hold."""
        return [f"{truth.__name__}: {found}" for truth in TRUTHS if (found := truth(self.house))]

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


class Stopped(Place):
    """Mixed into a walk: the service is told to stop in the middle of it."""

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
