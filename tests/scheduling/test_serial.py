"""The serial scheduler when things go wrong, and what stays loaded beside a job."""

from __future__ import annotations

import pytest

from llamaswap.config.model import GroupConfig
from llamaswap.errors import LoadRefused, ModelFailing, ModelUnloaded, TooManyRequests
from llamaswap.scheduling.vocabulary import Band, Facts, Load, Serve, Stop, Term, Ticket
from support.scheduling_box import Box, Life
from support.scheduling_setup import serial_box

NONE: frozenset[str] = frozenset()
SWAPPERS_AND_KEEPER = (
    GroupConfig(id="swap", members=("A", "B")),
    GroupConfig(id="keep", persistent=True, exclusive=False, swap=False, members=("E",)),
)


def failing_box(failures: int) -> Box:
    """Return a box whose model `A` has failed to load so many times in a row."""
    box = serial_box("ABC")
    box.fleet.broken.add("A")
    for _ in range(failures):
        box.arrive("A")
        box.settle()
    return box


# A client leaves during its own load.


def test_a_load_whose_client_left_goes_on_and_the_model_stays_warm() -> None:
    box = serial_box()
    box.cancel(box.arrive("A"))
    assert box.scheduler.view(0.0).jobs == ()

    box.settle()
    assert box.fleet.ready == {"A"}

    box.arrive("A")
    assert box.served == [2]
    assert len(box.loads) == 1


def test_the_next_ticket_for_the_loading_model_joins_its_load() -> None:
    box = serial_box()
    gone, heir = box.arrive("A"), box.arrive("A")
    box.advance(1.5)

    box.cancel(gone)
    assert box.dispatched == [1, 2]
    assert box.where(heir) is Life.DISPATCHED

    box.advance(0.5)
    assert box.served == [2]
    assert len(box.loads) == 1


def test_a_latecomer_joins_an_unclaimed_load_too() -> None:
    box = serial_box()
    box.cancel(box.arrive("A"))
    box.advance(1.0)

    box.arrive("A")
    box.advance(1.0)

    assert box.served == [2]
    assert len(box.loads) == 1


def test_a_pick_for_a_rival_ends_the_unclaimed_load() -> None:
    box = serial_box()
    gone = box.arrive("A")
    box.arrive("B")

    box.cancel(gone)

    assert box.loads == [("A", NONE), ("B", frozenset("A"))]
    box.settle()
    assert box.served == [2]
    assert box.fleet.ready == {"B"}


def test_a_pick_for_a_model_that_could_live_beside_it_ends_the_unclaimed_load_as_well() -> None:
    box = serial_box(groups=[GroupConfig(id="g", swap=False, members=("A", "B"))])
    gone = box.arrive("A")
    box.arrive("B")

    box.cancel(gone)

    assert box.loads[-1] == ("B", frozenset("A"))
    assert box.fleet.loads.keys() == {"B"}


def test_a_pick_for_a_resident_model_stops_the_unclaimed_load() -> None:
    box = serial_box("ABE", groups=SWAPPERS_AND_KEEPER)
    box.fleet.ready.add("E")
    gone = box.arrive("A")
    box.arrive("E")

    box.cancel(gone)

    assert box.stops == [frozenset("A")]
    assert box.served == [2]
    assert not box.fleet.loads


def test_a_better_ticket_ends_a_load_that_a_lesser_one_waits_for() -> None:
    box = serial_box()
    gone = box.arrive("A")
    box.arrive("A", 0)
    box.arrive("B", 100)

    box.cancel(gone)

    assert box.dispatched == [1, 3]
    box.settle()
    assert box.served == [3, 2]


def test_a_load_ended_before_its_evictions_were_through_starts_nothing() -> None:
    box = serial_box("ABC")
    box.fleet.stop_time = 5.0
    box.fleet.ready.add("C")
    gone = box.arrive("A")
    box.arrive("B")

    box.advance(1.0)
    box.cancel(gone)
    assert box.loads[-1] == ("B", frozenset("AC"))

    box.settle()
    assert box.served_at[2] == 7.0
    assert box.fleet.ready == {"B"}


def test_an_unclaimed_load_that_became_ready_is_kept_by_a_friendly_pick() -> None:
    box = serial_box("ABE", groups=SWAPPERS_AND_KEEPER)
    box.cancel(box.arrive("A"))
    ready = Facts(now=2.0, running=frozenset("AE"), ready=frozenset("AE"))

    decisions = box.scheduler.arrived(Ticket(number=9, model="E", priority=0, arrived=2.0), ready)

    assert not any(isinstance(decision, Stop) for decision in decisions)
    assert len(decisions) == 2


def test_an_unclaimed_load_that_became_ready_is_not_evicted_by_a_friendly_load() -> None:
    box = serial_box(groups=[GroupConfig(id="g", swap=False, members=("A", "B"))])
    box.cancel(box.arrive("A"))
    ready = Facts(now=2.0, running=frozenset("A"), ready=frozenset("A"))

    decisions = box.scheduler.arrived(Ticket(number=9, model="B", priority=0, arrived=2.0), ready)

    assert decisions[-1] == Load("B", NONE)


def test_a_ticket_that_comes_between_ready_and_its_report_is_served_once() -> None:
    box = serial_box()
    box.cancel(box.arrive("A"))
    ready = Facts(now=2.0, running=frozenset("A"), ready=frozenset("A"))
    ticket = Ticket(number=9, model="A", priority=0, arrived=2.0)

    assert box.scheduler.arrived(ticket, ready)[-1] == Serve(ticket)
    assert list(box.scheduler.loaded("A", ready)) == []


def test_an_unclaimed_load_that_fails_bothers_nobody() -> None:
    box = serial_box()
    box.fleet.broken.add("A")
    box.cancel(box.arrive("A"))

    box.settle()
    box.arrive("B")
    box.settle()

    assert (box.refused, box.served) == ({}, [2])


@pytest.mark.parametrize("broken", [False, True])
def test_nobody_joins_an_unclaimed_load_that_is_over(broken: bool) -> None:
    box = serial_box()
    if broken:
        box.fleet.broken.add("A")
    box.cancel(box.arrive("A"))
    box.settle()
    box.fleet.stop("A")  # idle for too long
    box.fleet.broken.clear()

    box.arrive("A")
    box.settle()

    assert box.served == [2]
    assert len(box.loads) == 2


def test_unclaimed_loads_that_fail_count_like_any_other() -> None:
    box = serial_box()
    box.fleet.broken.add("A")
    for _ in range(3):
        box.cancel(box.arrive("A"))
        box.settle()

    assert isinstance(box.refused[box.arrive("A").number], ModelFailing)


def test_five_hundred_departed_clients_are_passed_over_at_once() -> None:
    box = serial_box("ABC")
    box.fleet.ready.add("A")
    box.arrive("A", job=10.0)
    crowd = [box.arrive("B") for _ in range(500)]
    for ticket in crowd:
        box.cancel(ticket)
    last = box.arrive("C")

    assert box.scheduler.view(0.0).bands[Band.NORMAL].depth == 1
    box.settle()
    assert box.served == [1, last.number]
    assert [model for model, _ in box.loads] == ["C"]


# Loads fail.


def test_a_failed_load_costs_its_own_ticket_and_no_other() -> None:
    box = serial_box()
    box.fleet.broken.add("A")
    box.arrive("A", 100)
    box.arrive("B")
    box.arrive("A", -100)

    box.advance(2.0)
    assert [type(refusal) for refusal in box.refused.values()] == [LoadRefused]
    assert box.dispatched == [1, 2]

    box.fleet.broken.clear()
    box.settle()
    assert box.served == [2, 3]


def test_after_two_failures_the_model_is_still_tried() -> None:
    box = failing_box(2)

    box.arrive("A")

    assert len(box.loads) == 3


def test_the_third_failure_in_a_row_refuses_all_who_wait_for_the_model() -> None:
    box = failing_box(2)
    tickets = [box.arrive("A") for _ in range(4)]
    other = box.arrive("B", -100)

    box.advance(2.0)

    refusals = [box.refused[ticket.number] for ticket in tickets]
    assert {type(refusal) for refusal in refusals} == {ModelFailing}
    assert {(refusal.status, refusal.retry_after) for refusal in refusals} == {(503, 5)}
    assert all("out of memory" in refusal.message for refusal in refusals)
    assert box.dispatched[-1] == other.number


def test_each_refused_caller_gets_an_error_of_its_own() -> None:
    box = failing_box(2)
    tickets = [box.arrive("A") for _ in range(4)]

    box.settle()

    # Several coroutines raise them: one shared exception would mix up their tracebacks.
    assert len({id(box.refused[ticket.number]) for ticket in tickets}) == 4


def test_a_failing_model_evicts_nobody_until_its_pause_is_over() -> None:
    box = failing_box(3)
    box.arrive("B")
    box.advance(4.0)  # loaded after 2 s, done after 3 s
    tried = len(box.loads)

    refused = box.arrive("A", 100)
    assert box.refused[refused.number].retry_after == 1
    assert (len(box.loads), box.fleet.ready) == (tried, {"B"})

    box.advance(1.0)
    box.arrive("A")
    assert box.loads[-1] == ("A", frozenset("B"))


def test_the_pause_doubles_with_each_further_failure_up_to_five_minutes() -> None:
    box = failing_box(3)

    pauses = []
    for _ in range(8):
        pause = box.refused[box.arrive("A").number].retry_after
        assert pause is not None
        pauses.append(pause)
        box.advance(pause)
        box.arrive("A")
        box.advance(2.0)

    assert pauses == [5, 10, 20, 40, 80, 160, 300, 300]


def test_one_success_resets_the_count() -> None:
    box = failing_box(2)
    box.fleet.broken.clear()
    box.arrive("A")
    box.settle()
    box.unload("A")
    box.fleet.broken.add("A")

    for _ in range(2):
        box.arrive("A")
        box.settle()
    box.arrive("A")

    assert box.scheduler.wanted("A")
    assert not any(isinstance(refusal, ModelFailing) for refusal in box.refused.values())


def test_failures_with_successes_of_other_models_between_them_still_count() -> None:
    box = serial_box("ABC")
    box.fleet.broken.add("A")
    for _ in range(3):
        box.arrive("A")
        box.settle()
        box.arrive("B")
        box.settle()

    assert box.dispatched == [1, 2, 3, 4, 5, 6]
    assert isinstance(box.refused[5], ModelFailing)


def test_a_late_report_about_a_load_that_was_ended_is_no_failure_of_the_model() -> None:
    box = serial_box()
    for number in range(3):
        box.scheduler.load_failed("A", "stopped while loading", (), Facts(now=float(number)))

    box.arrive("A")

    assert box.dispatched == [1]


# Somebody unloads.


def test_an_unloaded_models_waiting_tickets_keep_waiting() -> None:
    box = serial_box()
    box.fleet.ready.add("A")
    job = box.arrive("A", job=100.0)
    patient = box.arrive("A")
    box.advance(1.0)

    box.unload("A")

    assert box.where(job) is Life.ENDED
    assert box.loads == [("A", NONE)]
    box.settle()
    assert box.where(patient) is Life.ENDED


def test_unloading_the_model_that_loads_fails_its_job_only() -> None:
    box = serial_box()
    job, patient = box.arrive("A"), box.arrive("A")

    box.unload("A")

    assert isinstance(box.refused[job.number], ModelUnloaded)
    assert box.where(patient) is Life.DISPATCHED
    box.settle()
    assert box.served == [patient.number]


def test_unloading_an_unclaimed_load_forgets_it() -> None:
    box = serial_box()
    box.cancel(box.arrive("A"))

    box.unload("A")
    box.arrive("A")

    assert box.loads == [("A", NONE)] * 2


def test_unloading_another_model_leaves_the_job_alone() -> None:
    box = serial_box("ABE", groups=SWAPPERS_AND_KEEPER)
    box.fleet.ready.add("E")
    job = box.arrive("A")

    box.unload("E")

    assert box.where(job) is Life.DISPATCHED


# What stays loaded, and what counts as resident.


def test_one_job_at_a_time_even_where_models_may_be_loaded_together() -> None:
    box = serial_box("ABE", groups=SWAPPERS_AND_KEEPER)
    box.fleet.ready |= {"A", "E"}
    box.arrive("A", job=10.0)
    second = box.arrive("E")

    box.advance(9.0)
    assert box.where(second) is Life.WAITING

    box.settle()
    assert box.dispatched_at[second.number] == 10.0


def test_a_persistent_embedder_stays_loaded_beside_the_models_that_swap() -> None:
    box = serial_box("ABE", groups=SWAPPERS_AND_KEEPER)
    for model in "EABEAE":
        box.arrive(model)

    box.settle()

    assert [model for model, _ in box.loads].count("E") == 1
    assert all("E" not in evict for _, evict in box.loads)


def test_affinity_favours_every_resident_model() -> None:
    box = serial_box("ABE", groups=SWAPPERS_AND_KEEPER)
    box.fleet.ready |= {"A", "E"}
    box.arrive("A", job=10.0)
    cold = box.arrive("B")
    beside = box.arrive("E")

    box.settle()

    assert box.dispatched == [1, beside.number, cold.number]
    assert box.verdicts[beside.number].changed_by == {Term.SWAP_AFFINITY}


def test_a_ready_model_that_must_evict_somebody_is_not_resident() -> None:
    groups = (GroupConfig(id="x", members=("A",)), GroupConfig(id="y", exclusive=False, members=("B",)))
    box = serial_box(groups=groups)
    box.fleet.ready |= {"A", "B"}
    facts = Facts(now=0.0, running=frozenset("AB"), ready=frozenset("AB"))

    assert not box.scheduler.resident("A", facts)
    assert box.scheduler.resident("B", facts)

    box.arrive("A")
    assert box.verdicts[1].score == "0"
    assert box.loads == [("A", frozenset("B"))]
    box.settle()
    assert (box.served, box.fleet.ready) == ([1], {"A"})


def test_a_model_that_still_starts_or_stops_is_not_resident() -> None:
    scheduler = serial_box().scheduler

    assert not scheduler.resident("A", Facts(now=0.0, running=frozenset("A")))
    assert not scheduler.resident("A", Facts(now=0.0))


# Who goes next, seen from outside.


def test_interleaved_models_cost_one_load_each() -> None:
    box = serial_box("ABC")
    for model in "ABAACABC":
        box.arrive(model)

    box.settle()

    assert [model for model, _ in box.loads] == ["A", "B", "C"]
    by_model = {m: [n for n in box.served if box.tickets[n - 1].model == m] for m in "ABC"}
    assert by_model == {"A": [1, 3, 4, 6], "B": [2, 7], "C": [5, 8]}


@pytest.mark.parametrize("bonus", [0, 2, 10])
def test_case_004_a_cold_ticket_overtakes_resident_ones_when_its_lead_exceeds_the_window(bonus: int) -> None:
    box = serial_box(divisor=10.0, bonus=bonus)
    box.fleet.ready.add("A")
    box.arrive("A")
    cold = box.arrive("B")

    for _ in range(150):
        box.arrive("A")  # one a second, as fast as they are served
        box.advance(1.0)

    # Each waiting A is as old as its place in the queue: one second.
    assert box.dispatched_at[cold.number] == pytest.approx(bonus * 10.0, abs=2.0)


def test_extreme_priorities_keep_their_order() -> None:
    box = serial_box()
    box.fleet.ready.add("A")
    box.arrive("A")
    wanted = [2**63 - 1, 2**63 - 2, 101, 100, 0, -1, -(2**63) + 1, -(2**63)]
    for priority in reversed(wanted):
        box.arrive("A", priority)

    box.settle()

    assert [box.tickets[number - 1].priority for number in box.dispatched[1:]] == wanted


def test_a_priority_of_four_hundred_digits_stops_nothing() -> None:
    box = serial_box()
    huge = 10**400
    for priority in (0, -huge, huge, huge - 1):
        box.arrive("A", priority)

    box.settle()

    assert box.served == [1, 3, 4, 2]


# Limits and views.


def test_there_is_no_limit_unless_a_model_sets_one() -> None:
    box = serial_box(limits={"B": 2})
    for _ in range(200):
        box.arrive("A")
    for _ in range(2):
        box.arrive("B")
    assert box.refused == {}

    over = box.arrive("B")

    assert isinstance(box.refused[over.number], TooManyRequests)
    assert box.dispatched == [1]


@pytest.mark.parametrize("how", ["leaves", "ends", "fails", "is unloaded", "leaves while it loads"])
def test_a_slot_is_free_again_however_its_ticket_goes(how: str) -> None:
    box = serial_box(limits={"A": 1})
    if how == "leaves":
        box.arrive("B", job=0.0)
    if how == "fails":
        box.fleet.broken.add("A")
    ticket = box.arrive("A")
    if how.startswith("leaves"):
        box.cancel(ticket)
    if how == "is unloaded":
        box.unload("A")
    box.settle()
    assert box.scheduler.view(0.0).jobs == ()

    again = box.arrive("A")

    assert again.number not in box.refused


def test_the_slots_of_tickets_refused_by_a_failing_model_are_given_back() -> None:
    box = serial_box(limits={"A": 4})
    box.fleet.broken.add("A")
    for _ in range(4):
        box.arrive("A")
    box.advance(6.0)
    assert len(box.refused) == 4

    box.advance(5.0)
    assert all(box.arrive("A").number not in box.refused for _ in range(4))


def test_wanted_is_true_while_a_ticket_waits_loads_or_runs() -> None:
    box = serial_box()
    assert not box.scheduler.wanted("A")

    box.arrive("A")
    box.arrive("B", job=5.0)
    assert box.scheduler.wanted("A")
    assert box.scheduler.wanted("B")

    box.advance(4.0)
    assert not box.scheduler.wanted("A")
    assert box.scheduler.wanted("B")

    box.settle()
    assert not box.scheduler.wanted("B")


def test_the_view_counts_who_waits_in_each_band_and_not_the_job() -> None:
    box = serial_box()
    box.arrive("A", 100)
    for priority in (50, -98, 2, 10**6):
        box.arrive("A", priority)

    view = box.scheduler.view(1.0)

    assert {band: look.depth for band, look in view.bands.items()} == {
        Band.INTERACTIVE: 1,
        Band.NORMAL: 2,
        Band.BATCH: 1,
    }
    assert [job.number for job in view.jobs] == [1]
