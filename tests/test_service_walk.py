"""The whole machine, in any order of events: what has to hold holds after each of them.

Clients, models' servers, children, operators and both clocks do what they like; the daemon is whole, but
for its sockets and processes.  With `LLAMASWAP_SOAK=1` many more walks are made.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, run_state_machine_as_test
from typing_extensions import override

from llamaswap.scheduling.vocabulary import Band
from support.machine import House
from support.machine_orders import Desk, Wish
from support.machine_parts import MODELS, Plan
from support.machine_place import Place, Stopped, some_place

some_model = st.sampled_from(["a", "b", "c", "any", "ghost"])
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


class Walk(Place):
    """A busy operator, and clients that come and go."""

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

    @rule()
    def all_leave(self) -> None:
        """Everybody hangs up."""
        for guest in self.house.guests:
            if not guest.left:
                self.house.leaves(guest)

    @rule(why=st.sampled_from(["", "", "no such file"]))
    def nothing_starts(self, why: str) -> None:
        """No child can be started from now on, or all can again."""
        self.house.rig.children.refusal = why

    # --- operators and clocks ---

    @rule(plan=plans)
    def reload(self, plan: Plan) -> None:
        """The operator has changed something."""
        self.house.reload(plan)

    @rule(path=st.sampled_from(["GET /unload", *(f"POST /api/models/unload/{name}" for name in MODELS)]))
    def unload(self, path: str) -> None:
        """An operator stops everything, or one model."""
        self.house.looks(path)

    @rule(seconds=st.sampled_from([-86_400.0, -1.0, 3600.0]))
    def wall_jumps(self, seconds: float) -> None:
        """Somebody sets the clock on the wall."""
        self.house.wall_jumps(seconds)


some_bands = st.sets(st.sampled_from(list(Band)), max_size=2)
some_key = st.sampled_from(["op", "op", "high", "low"])
rich_plans = st.builds(
    Plan,
    models=st.dictionaries(st.sampled_from(sorted(MODELS)), st.integers(1, 2), min_size=2),
    scheduler=st.sampled_from(["serial", "serial", "serial", "fifo"]),
    families=st.sampled_from([(), (), ("a", "b", "c"), ("ab", "c"), ("ac", "b"), ("a", "bc"), ("abc",)]),
    preload=st.sampled_from([False, False, False, True]),
    protected=st.sampled_from(["", "", "", "a", "b", "c", "bc"]).map(frozenset),
    width=st.integers(1, 3),
    budget=st.sampled_from([0, 0, 0, 5, 600]),
    max_wait=st.sampled_from([0, 0, 0, 2]),
    max_queue=st.sampled_from([0, 0, 2]),
    callers=st.booleans(),
    more=st.sampled_from(["", "", "keepAlive: {stream: 1s, json: 2s}"]),
)
wishes = st.builds(
    Wish,
    model=st.sampled_from(sorted(MODELS)),
    priority=st.sampled_from(["", "", "batch", "interactive"]),
    stream=st.booleans(),
    key=some_key,
    patience=st.sampled_from(["", "", "", "0", "1", "5s"]),
    evicts=st.sampled_from([False, False, False, True]),
)


class Ordered(Place):
    """Everything is used that is off until somebody asks for it, and people order the queue about."""

    @initialize(plan=rich_plans, crowd=st.lists(wishes, max_size=5), rounds=st.integers(0, 3))
    def begin(self, plan: Plan, crowd: list[Wish], rounds: int) -> None:
        """Some are there already."""
        self.house = House(plan)
        self.desk = Desk(self.house)
        self.come(crowd)
        for _ in range(rounds):
            self.house.serves_a_round()

    @rule(crowd=st.lists(wishes, min_size=1, max_size=4))
    def come(self, crowd: list[Wish]) -> None:
        """Clients come who say everything that can be said."""
        for wish in crowd:
            self.desk.receives(wish)

    @rule(crowd=st.lists(wishes, min_size=2, max_size=6))
    def nobody_comes(self, crowd: list[Wish]) -> None:
        """For as long as nobody else comes or leaves, those who wait go as they were told."""
        self.come([replace(wish, patience="", evicts=False) for wish in crowd])
        foretold = self.desk.foretold()
        for _ in range(3 * len(foretold)):
            self.house.serves_a_round()
        assert not (wrong := self.desk.goes_otherwise(foretold)), wrong

    @rule()
    def come_up(self) -> None:
        """What has to go goes, what is to come up does so, and is asked."""
        self.house.stopped_ones_end()
        self.house.health(200)
        while self.house.wanted_lines():
            self.house.connects()

    @rule(verb=st.sampled_from(["pause", "resume", "resume"]), bands=some_bands, key=some_key)
    def hold(self, verb: str, bands: set[Band], key: str) -> None:
        """Somebody holds bands up, or lets them go on."""
        self.desk.holds(verb, bands, key)

    @rule(place=some_place, priority=st.sampled_from(["batch", "normal", "interactive", 7]), key=some_key)
    def move(self, place: int, priority: int | str, key: str) -> None:
        """Somebody moves one who waits."""
        self.desk.moves(place, priority, key)

    @rule(place=some_place, key=some_key)
    def send_away(self, place: int, key: str) -> None:
        """Somebody sends one who waits away."""
        self.desk.sends_away(place, key)

    @rule(names=st.sampled_from([[name] for name in MODELS] + [list(MODELS)]))
    def unload(self, names: list[str]) -> None:
        """An operator stops one model, or everything."""
        path = "GET /unload" if len(names) > 1 else f"POST /api/models/unload/{names[0]}"
        self.desk.unloads(path, names)

    @rule(plan=rich_plans)
    def reload(self, plan: Plan) -> None:
        """The operator has changed something."""
        self.house.reload(plan)

    @override
    def wrong(self) -> list[str]:
        """Orders are obeyed, and the queue is what its page says."""
        return super().wrong() + self.desk.looks_around()

    @override
    def teardown(self) -> None:
        """Everybody may go on in the end."""
        if hasattr(self, "desk") and not self.failed:
            self.desk.holds("resume", set(), "op")
        super().teardown()


class StoppedWalk(Stopped, Walk):
    """The same, but stopped in the middle."""


class StoppedOrdered(Stopped, Ordered):
    """And so is this one."""


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


@pytest.mark.parametrize("part", PARTS)
def test_what_has_to_hold_holds_while_people_order_the_queue_about(part: int) -> None:
    run_state_machine_as_test(Ordered, settings=so_many(100))


@pytest.mark.parametrize("part", PARTS)
def test_a_service_that_is_ordered_about_can_be_stopped(part: int) -> None:
    run_state_machine_as_test(StoppedOrdered, settings=so_many(25))
