"""llama-swap's scheduler, rule by rule."""

from __future__ import annotations

import pytest

from llamaswap.config.model import GroupConfig
from llamaswap.errors import LoadRefused, ModelUnloaded, NeedsSerial, ShuttingDown, TooManyRequests
from llamaswap.scheduling.fifo import FifoScheduler
from llamaswap.scheduling.vocabulary import Band, Facts, Ticket
from support.scheduling_box import Box, Life
from support.scheduling_setup import fifo_box, models_named

NONE: frozenset[str] = frozenset()
LONG = 1000.0  # seconds; a job that a test does not wait for
EXCLUSIVE_AND_NOT = (
    GroupConfig(id="x", members=("A",)),
    GroupConfig(id="y", exclusive=False, members=("B",)),
)
FRIENDS = (GroupConfig(id="g", swap=False, members=("A", "B", "C")),)


def with_ready(box: Box, *models: str) -> Box:
    box.fleet.ready.update(models)
    return box


# Slots.


def test_a_model_that_sets_no_limit_has_ten_slots() -> None:
    box = fifo_box()
    tickets = [box.arrive("A") for _ in range(11)]

    assert list(box.refused) == [tickets[-1].number]
    refusal = box.refused[tickets[-1].number]
    assert isinstance(refusal, TooManyRequests)
    assert (refusal.status, refusal.retry_after) == (429, 1)


def test_serving_and_waiting_both_take_a_slot_and_leaving_frees_it() -> None:
    box = with_ready(fifo_box(limits={"B": 2, "A": 2}), "A")
    box.arrive("A", job=LONG)
    box.arrive("B")
    waiting = box.arrive("B")
    assert box.arrive("B").number in box.refused

    box.cancel(waiting)

    assert box.arrive("B").number not in box.refused
    assert box.arrive("B").number in box.refused


def test_a_slot_is_free_when_its_request_has_been_served() -> None:
    box = with_ready(fifo_box(limits={"A": 1}), "A")
    box.arrive("A")
    box.settle()

    assert box.arrive("A").number not in box.refused


# Joining a load.


def test_several_requests_share_one_load() -> None:
    box = fifo_box()
    for _ in range(3):
        box.arrive("A")

    assert box.loads == [("A", NONE)]
    box.advance(2.0)
    assert box.served == [1, 2, 3]


def test_a_request_joins_a_load_past_more_urgent_ones_in_the_queue() -> None:
    box = fifo_box()
    box.arrive("A", job=LONG)
    box.arrive("B", 100)

    box.arrive("A", -100)
    box.advance(2.0)

    assert box.served == [1, 3]


def test_a_failed_load_fails_all_who_joined_it_and_the_queue_moves_on() -> None:
    box = fifo_box()
    box.fleet.broken.add("A")
    both = [box.arrive("A"), box.arrive("A")]
    box.arrive("B")

    box.settle()

    refusals = [box.refused[ticket.number] for ticket in both]
    assert [type(refusal) for refusal in refusals] == [LoadRefused] * 2
    assert refusals[0] is not refusals[1]
    assert box.served == [3]


def test_a_load_whose_waiters_all_left_goes_on_and_the_model_stays() -> None:
    box = fifo_box()
    box.cancel(box.arrive("A"))
    box.arrive("B")
    box.advance(1.9)
    assert [model for model, _ in box.loads] == ["A"]

    box.advance(0.1)
    assert box.loads[-1] == ("B", frozenset("A"))


def test_a_waiter_that_left_is_never_counted_in_flight() -> None:
    box = fifo_box()
    gone = box.arrive("A")
    box.arrive("B")

    box.cancel(gone)
    box.advance(2.0)

    assert box.served == []
    assert box.dispatched == [1, 2]  # nobody runs on A, so B may evict it as soon as it is loaded


# Ready models.


def test_a_ready_model_serves_past_the_queue() -> None:
    box = with_ready(fifo_box(), "A")
    box.arrive("A", job=LONG)
    box.arrive("B", 100)

    box.arrive("A", -100)

    assert box.served == [1, 3]


def test_steady_traffic_starves_the_queue_by_design() -> None:
    box = with_ready(fifo_box(), "A")
    box.arrive("A", job=2.0)
    hungry = box.arrive("B", 100)

    for _ in range(100):
        box.advance(1.0)
        box.arrive("A", job=2.0)

    assert box.where(hungry) is Life.WAITING


def test_a_ready_model_that_a_load_is_about_to_evict_serves_nobody_new() -> None:
    box = with_ready(fifo_box(groups=EXCLUSIVE_AND_NOT), "B")
    facts = Facts(now=0.0, running=frozenset("B"), ready=frozenset("B"))
    assert box.scheduler.resident("B", facts)

    box.arrive("A", job=1.0)

    assert not box.scheduler.resident("B", facts)
    late = Ticket(number=9, model="B", priority=0, arrived=0.0)
    assert list(box.scheduler.arrived(late, facts)) == []


def test_an_exclusive_model_evicts_an_idle_neighbour_although_it_is_ready_itself() -> None:
    box = with_ready(fifo_box(groups=EXCLUSIVE_AND_NOT), "A", "B")

    box.arrive("A")

    assert box.loads == [("A", frozenset("B"))]
    assert (box.served, box.fleet.ready) == ([1], {"A"})


def test_an_exclusive_model_waits_for_a_busy_neighbour_although_it_is_ready_itself() -> None:
    box = with_ready(fifo_box(groups=EXCLUSIVE_AND_NOT), "A", "B")
    box.arrive("B", job=10.0)
    exclusive = box.arrive("A")
    assert box.where(exclusive) is Life.WAITING

    box.advance(10.0)

    assert box.served == [1, 2]
    assert box.fleet.ready == {"A"}


# Collisions and busy models.


def test_a_rival_waits_for_the_load_and_for_its_requests() -> None:
    box = fifo_box()
    box.arrive("A", job=5.0)
    box.arrive("B")

    box.advance(6.9)
    assert box.dispatched == [1]

    box.advance(0.1)
    assert box.loads[-1] == ("B", frozenset("A"))


def test_a_busy_model_is_evicted_only_when_its_last_request_ends() -> None:
    box = with_ready(fifo_box(), "A")
    box.arrive("A", job=5.0)
    box.arrive("A", job=9.0)
    box.arrive("B")

    box.advance(8.9)
    assert box.loads == []

    box.advance(0.1)
    assert box.loads == [("B", frozenset("A"))]


def test_models_of_groups_that_leave_each_other_alone_load_side_by_side() -> None:
    groups = [GroupConfig(id=name, exclusive=False, members=(name,)) for name in "AB"]
    box = fifo_box(groups=groups)

    box.arrive("A")
    box.arrive("B")

    assert box.fleet.loads.keys() == {"A", "B"}
    box.advance(2.0)
    assert box.served == [1, 2]


def test_two_loads_that_evict_the_same_model_go_one_after_the_other() -> None:
    groups = (
        GroupConfig(id="pair", swap=False, members=("A", "B")),
        GroupConfig(id="old", members=("C",)),
    )
    box = with_ready(fifo_box("ABC", groups=groups), "C")
    box.fleet.stop_time = 1.0
    box.arrive("A", job=LONG)
    second = box.arrive("B")

    box.advance(2.9)
    assert box.where(second) is Life.WAITING

    box.advance(0.1)
    assert box.served == [1]
    assert box.loads == [("A", frozenset("C")), ("B", NONE)]


def test_a_model_that_a_load_evicts_is_not_loaded_beside_it() -> None:
    box = with_ready(fifo_box(groups=EXCLUSIVE_AND_NOT), "B")
    box.fleet.stop_time = 1.0
    box.arrive("A", job=0.0)

    back = box.arrive("B")

    assert box.loads == [("A", frozenset("B"))]
    box.settle()
    assert box.served == [1, back.number]


def test_the_planner_sees_children_and_loads_under_way_and_the_model_itself() -> None:
    asked: list[tuple[str, frozenset[str]]] = []

    def make_room(target: str, running: frozenset[str]) -> frozenset[str]:
        asked.append((target, running))
        return NONE

    scheduler = FifoScheduler({}, models_named("ABC"), make_room)
    scheduler.arrived(Ticket(number=1, model="A", priority=0, arrived=0.0), Facts(now=0.0))
    assert asked[-1] == ("A", NONE)

    # A planner that reads "already running" as "evict nothing" has to be told.
    stopping = Facts(now=1.0, running=frozenset("BC"))
    scheduler.arrived(Ticket(number=2, model="B", priority=0, arrived=1.0), stopping)
    assert asked[-1] == ("B", frozenset("ABC"))


# The queue.


def test_the_queue_is_by_priority_and_by_arrival_within_one() -> None:
    box = with_ready(fifo_box(["A", "hi", "m1", "m2", "low"], priorities={"hi": 9, "m1": 4, "m2": 4}), "A")
    box.arrive("A", job=1.0)
    for model in ("m2", "low", "m1", "hi"):
        box.arrive(model)

    box.settle()

    assert [model for model, _ in box.loads] == ["hi", "m2", "m1", "low"]


def test_the_priority_of_an_alias_has_no_effect() -> None:
    box = with_ready(fifo_box(["A", "hi", "m1"], priorities={"alias-of-hi": 9, "m1": 4}), "A")
    box.arrive("A", job=1.0)
    box.arrive("hi")
    box.arrive("m1")

    box.settle()

    assert [model for model, _ in box.loads] == ["m1", "hi"]


def test_interleaved_models_cost_one_load_each() -> None:
    box = fifo_box(["w", "x", "y", "z"])
    box.arrive("w", job=1.0)
    for model in "xyzxyz":
        box.arrive(model)

    box.settle()

    assert [model for model, _ in box.loads] == ["w", "x", "y", "z"]
    assert box.served == [1, 2, 5, 3, 6, 4, 7]


def test_the_header_is_added_to_the_models_priority() -> None:
    box = with_ready(fifo_box("ABC", priorities={"B": 10, "C": -5}), "A")
    box.arrive("A", job=1.0)
    box.arrive("B", -100)
    box.arrive("C", 2**63 - 1)
    box.arrive("B", 0)

    box.settle()

    assert box.served == [1, 3, 4, 2]
    assert [box.verdicts[n].metadata["fifo_priority"] for n in (2, 3, 4)] == [
        "-90",
        str(2**63 - 6),
        "10",
    ]


def test_a_verdict_tells_the_wait_and_the_band_and_no_score() -> None:
    box = with_ready(fifo_box(priorities={"B": 120}), "A")
    box.arrive("A", job=3.5)
    box.arrive("B")
    box.settle()

    verdict = box.verdicts[2]
    assert (verdict.priority, verdict.band, verdict.waited) == (120, Band.INTERACTIVE, 3.5)
    assert (verdict.score, verdict.changed_by) == ("", frozenset())


def test_a_ticket_that_leaves_the_queue_lets_the_others_keep_their_order() -> None:
    box = with_ready(fifo_box("ABC"), "A")
    box.arrive("A", job=1.0)
    gone = box.arrive("B")
    box.arrive("C")

    box.cancel(gone)
    box.settle()

    assert box.served == [1, 3]
    assert [model for model, _ in box.loads] == ["C"]


# Unloading and closing.


def test_unloading_fails_who_waits_for_the_model_in_the_queue_or_for_its_load() -> None:
    box = fifo_box("ABC")
    loading = box.arrive("A")
    queued = box.arrive("B")
    other = box.arrive("C")

    box.unload("A", "B")

    assert {type(box.refused[ticket.number]) for ticket in (loading, queued)} == {ModelUnloaded}
    assert box.refused[queued.number] is not box.refused[loading.number]
    assert box.dispatched[-1] == other.number


def test_unloading_a_busy_model_cuts_its_requests_and_lets_the_queue_move() -> None:
    box = with_ready(fifo_box(), "A")
    cut = [box.arrive("A", job=LONG) for _ in range(2)]
    box.arrive("B")

    box.unload("A")

    assert {box.where(ticket) for ticket in cut} == {Life.ENDED}
    assert box.loads == [("B", NONE)]


@pytest.mark.parametrize("model", ["A", "B"])
def test_after_an_unload_the_slots_are_free(model: str) -> None:
    box = fifo_box(limits={"A": 1, "B": 1})
    box.arrive("A")
    box.arrive("B")
    box.unload("A", "B")

    assert box.arrive(model).number not in box.refused


def test_closing_refuses_the_queue_and_those_whose_model_loads() -> None:
    box = fifo_box("ABC")
    loading, queued = box.arrive("A"), box.arrive("B")

    box.close()
    box.settle()

    assert {type(box.refused[ticket.number]) for ticket in (loading, queued)} == {ShuttingDown}
    assert box.served == []


def test_a_request_that_ends_after_closing_starts_nobody() -> None:
    box = with_ready(fifo_box(), "A")
    box.arrive("A", job=1.0)
    box.close()

    box.settle()

    assert box.loads == []
    assert not box.scheduler.wanted("A")


# Views.


def test_wanted_is_true_while_a_ticket_waits_loads_or_runs() -> None:
    box = fifo_box()
    box.arrive("A", job=1.0)
    box.arrive("B", job=1.0)
    assert box.scheduler.wanted("A")
    assert box.scheduler.wanted("B")

    box.advance(2.5)
    assert box.scheduler.wanted("A")
    box.settle()
    assert not box.scheduler.wanted("A")
    assert not box.scheduler.wanted("B")


def test_the_view_shows_who_is_served_and_who_waits_for_a_load_as_dispatched() -> None:
    box = with_ready(fifo_box("ABC", groups=FRIENDS, priorities={"A": -1}), "A")
    box.arrive("A", job=LONG)
    box.arrive("B")

    view = box.scheduler.view(0.0)

    assert {ticket.number for ticket in view.jobs} == {1, 2}
    assert {look.depth for look in view.bands.values()} == {0}


def test_the_bands_of_the_queue_are_those_of_the_summed_priorities() -> None:
    box = with_ready(fifo_box("ABC", priorities={"B": -1}), "A")
    box.arrive("A", job=LONG)
    box.arrive("B", 0)
    box.advance(2.0)
    box.arrive("C", 0)
    box.arrive("B", 0)
    box.advance(1.0)

    bands = box.scheduler.view(box.clock.seconds()).bands

    assert {band: (look.depth, look.oldest_wait) for band, look in bands.items()} == {
        Band.INTERACTIVE: (0, 0.0),
        Band.NORMAL: (1, 1.0),
        Band.BATCH: (2, 3.0),
    }


def test_nothing_is_scored_so_that_there_is_nothing_to_explain() -> None:
    box = fifo_box("AB")
    box.arrive("A")
    late = box.arrive("B")

    assert box.scheduler.terms(late, box.facts) is None
    assert box.scheduler.eta(late, (), box.facts) is None
    with pytest.raises(NeedsSerial):
        box.scheduler.explain(late, box.facts)


def test_a_paused_ticket_joins_no_load_and_an_unload_fails_it_like_others() -> None:
    box = fifo_box("AB")
    box.pause(Band.BATCH)
    box.arrive("A", 0)
    paused = box.arrive("A", -100)
    assert box.dispatched == [1]

    box.unload("A")

    assert isinstance(box.refused[paused.number], ModelUnloaded)


def test_the_band_that_is_paused_is_that_of_both_priorities() -> None:
    box = fifo_box("AB", priorities={"A": -1})
    box.pause(Band.BATCH)

    box.arrive("A", 0)
    box.arrive("B", 0)

    assert box.dispatched == [2]


def test_another_priority_for_who_shares_a_load_is_none() -> None:
    box = fifo_box("A")
    box.arrive("A")
    sharing = box.arrive("A")

    assert box.scheduler.ticket(sharing.number) is None
    assert box.scheduler.waiting() == 0
