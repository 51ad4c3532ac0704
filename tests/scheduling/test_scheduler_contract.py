"""What every scheduler owes the dispatcher.  A new one is a row in `BOXES`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaswap.config.model import GroupConfig
from llamaswap.errors import ModelUnloaded, ShuttingDown
from llamaswap.scheduling.forecast import Job
from llamaswap.scheduling.vocabulary import Band, Decision, Dispatch, Facts, Ticket
from support.scheduling_box import Box, Life
from support.scheduling_setup import fifo_box, serial_box
from support.scheduling_walks import MODELS, TICK, Step, groupings, meddled_walks, walk, walks


class MakeBox(Protocol):
    """Builds a box around one scheduler."""

    def __call__(
        self, names: Iterable[str] = "AB", *, groups: Sequence[GroupConfig] | None = None
    ) -> Box: ...


BOXES: dict[str, MakeBox] = {"serial": serial_box, "fifo": fifo_box}
TERMINAL = {Life.ENDED, Life.REFUSED, Life.CANCELLED}
delays = st.sampled_from((0.0, TICK, 1.0, 30.0))

every_scheduler = pytest.mark.parametrize("make", BOXES.values(), ids=BOXES.keys())


# Drawn rather than parametrized: pytest-twisted wraps a hypothesis test once per parameter and trips over it.
@given(
    make=st.sampled_from(tuple(BOXES.values())),
    steps=walks,
    groups=groupings(),
    load_time=delays,
    stop_time=delays,
    closes=st.booleans(),
    quarrelsome=st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_each_ticket_ends_once_whatever_happens(
    make: MakeBox,
    steps: list[Step],
    groups: tuple[GroupConfig, ...],
    load_time: float,
    stop_time: float,
    closes: bool,
    quarrelsome: bool,
) -> None:
    box = make(MODELS, groups=groups)
    if quarrelsome:  # a refused caller takes its neighbour away while decisions are still carried out
        box.on_refuse = lambda ticket: box.cancel(box.tickets[ticket.number % len(box.tickets)])

    walk(box, steps, load_time=load_time, stop_time=stop_time)
    if closes:
        box.close()
    box.settle()

    _all_is_over(box)


@given(
    make=st.sampled_from(tuple(BOXES.values())),
    steps=meddled_walks,
    groups=groupings(),
    load_time=delays,
    stop_time=delays,
    closes=st.booleans(),
    quarrelsome=st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_each_ticket_ends_once_whoever_meddles(
    make: MakeBox,
    steps: list[Step],
    groups: tuple[GroupConfig, ...],
    load_time: float,
    stop_time: float,
    closes: bool,
    quarrelsome: bool,
) -> None:
    box = make(MODELS, groups=groups)
    if quarrelsome:
        box.on_refuse = lambda ticket: box.reprioritise(box.tickets[ticket.number % len(box.tickets)], 7)

    walk(box, steps, load_time=load_time, stop_time=stop_time)
    if closes:
        box.close()
    box.resume(*Band)
    box.settle()

    _all_is_over(box)


def _all_is_over(box: Box) -> None:
    """Each ticket has come to one end, and nothing is left of any."""
    assert set(box.life.values()) <= TERMINAL
    assert len(set(box.served)) == len(box.served)
    assert not box.fleet.loads
    view = box.scheduler.view(box.clock.seconds())
    assert view.jobs == ()
    assert [(band.depth, band.oldest_wait) for band in view.bands.values()] == [(0, 0.0)] * 3
    assert not any(box.scheduler.wanted(model) for model in MODELS)


@every_scheduler
def test_a_ticket_for_a_cold_model_loads_it_and_is_served(make: MakeBox) -> None:
    box = make()

    ticket = box.arrive("A")
    assert (box.dispatched, box.served, box.loads) == ([1], [], [("A", frozenset())])

    box.advance(2.0)
    assert box.served == [1]

    box.advance(1.0)
    assert box.life[ticket.number] is Life.ENDED


@every_scheduler
def test_a_resident_model_serves_in_the_turn_in_which_the_ticket_arrives(make: MakeBox) -> None:
    box = make()
    box.fleet.ready.add("A")

    box.arrive("A")

    assert (box.dispatched, box.served, box.loads) == ([1], [1], [])


@every_scheduler
def test_a_swap_waits_for_the_running_job(make: MakeBox) -> None:
    box = make("ABC")
    box.fleet.ready.add("A")
    box.arrive("A", job=10.0)
    box.advance(1.0)
    box.arrive("B")
    box.advance(1.0)
    box.arrive("C")

    box.advance(7.9)
    assert box.loads == []

    box.settle()
    assert box.served == [1, 2, 3]
    assert box.loads == [("B", frozenset("A")), ("C", frozenset("B"))]


@every_scheduler
def test_a_ticket_that_leaves_while_it_waits_never_loads_anything(make: MakeBox) -> None:
    box = make()
    box.fleet.ready.add("A")
    box.arrive("A")
    gone = box.arrive("B")

    box.cancel(gone)
    box.settle()

    assert box.served == [1]
    assert box.loads == []


@every_scheduler
def test_a_running_ticket_that_leaves_frees_the_box_at_once(make: MakeBox) -> None:
    box = make()
    box.fleet.ready.add("A")
    running = box.arrive("A", job=1000.0)
    box.arrive("B")

    box.advance(1.0)
    box.cancel(running)

    assert box.dispatched == [1, 2]
    assert box.dispatched_at[2] == 1.0


@every_scheduler
def test_a_failed_load_refuses_only_who_needed_it(make: MakeBox) -> None:
    box = make()
    box.fleet.broken.add("A")
    box.arrive("A")
    box.arrive("B")

    box.settle()

    assert box.refused[1].status == 500
    assert "out of memory" in box.refused[1].message
    assert box.served == [2]


@every_scheduler
def test_an_unloaded_load_refuses_its_ticket_and_the_next_one_goes(make: MakeBox) -> None:
    box = make()
    box.arrive("A")
    box.arrive("B")

    box.advance(1.0)
    box.unload("A")

    assert isinstance(box.refused[1], ModelUnloaded)
    assert box.dispatched == [1, 2]


@every_scheduler
def test_unloading_a_model_under_a_job_lets_the_next_one_go(make: MakeBox) -> None:
    box = make()
    box.fleet.ready.add("A")
    box.arrive("A", job=1000.0)
    box.arrive("B")

    box.unload("A")

    assert box.life[1] is Life.ENDED
    assert box.dispatched == [1, 2]


@every_scheduler
def test_closing_refuses_who_waits_and_who_comes_and_lets_the_job_end(make: MakeBox) -> None:
    box = make()
    box.fleet.ready.add("A")
    job = box.arrive("A", job=5.0)
    box.arrive("B")

    box.close()
    box.arrive("A")

    assert {number: type(refusal) for number, refusal in box.refused.items()} == dict.fromkeys(
        (2, 3), ShuttingDown
    )
    assert all(refusal.retry_after for refusal in box.refused.values())
    assert box.where(job) is Life.SERVING
    box.settle()
    assert box.where(job) is Life.ENDED
    assert box.served == [1]


@every_scheduler
def test_closing_while_a_client_leaves_dispatches_nobody(make: MakeBox) -> None:
    box = make()
    job = box.arrive("A")
    box.arrive("B")
    box.close()

    box.cancel(job)
    box.settle()

    assert box.dispatched == [1]


@every_scheduler
def test_a_refused_caller_may_drag_another_ticket_along(make: MakeBox) -> None:
    box = make("ABC")
    box.fleet.broken.add("A")
    box.arrive("A")
    friend = box.arrive("B")
    box.arrive("C")
    box.on_refuse = lambda _: box.cancel(friend)

    box.settle()

    assert box.life[friend.number] is Life.CANCELLED
    assert box.served == [3]


@every_scheduler
def test_a_client_that_leaves_in_the_turn_of_its_serve_counts_as_gone(make: MakeBox) -> None:
    box = make(groups=[GroupConfig(id="g", swap=False, members=("A", "B"))])
    box.fleet.ready.add("B")
    box.fleet.broken.add("A")
    box.arrive("A")
    friend = box.arrive("B", job=1000.0)
    box.on_refuse = lambda _: box.cancel(friend)

    box.settle()

    assert box.life[friend.number] is Life.CANCELLED
    assert not box.scheduler.wanted("B")


@every_scheduler
def test_reports_about_strangers_change_nothing(make: MakeBox) -> None:
    scheduler = make().scheduler
    stranger = Ticket(number=7, model="A", priority=0, arrived=0.0)
    facts = Facts(now=0.0)

    reports: list[Callable[[], Sequence[Decision]]] = [
        lambda: scheduler.cancelled(stranger, facts),
        lambda: scheduler.released(stranger, facts),
        lambda: scheduler.loaded("A", facts),
        lambda: scheduler.load_failed("A", "exited", (), facts),
        lambda: scheduler.unloaded(frozenset("A"), facts),
    ]

    assert [list(report()) for report in reports] == [[]] * 5


@every_scheduler
def test_a_departed_crowd_leaves_no_trace(make: MakeBox) -> None:
    box = make()
    box.fleet.ready.add("A")
    box.arrive("A", job=10.0)
    crowd = [box.arrive("B") for _ in range(9)]

    for ticket in crowd:
        box.cancel(ticket)
    assert box.scheduler.view(1.0).bands[Band.NORMAL].depth == 0

    box.arrive("A")
    box.settle()
    assert box.served[-1] == 11
    assert box.loads == []


@every_scheduler
def test_the_oldest_wait_is_that_of_the_ticket_that_waits_longest(make: MakeBox) -> None:
    box = make()
    box.fleet.ready.add("A")
    box.arrive("A", job=100.0)
    box.advance(1.0)
    oldest = box.arrive("B", -100)
    box.advance(1.0)
    box.arrive("B", -98)
    box.advance(1.0)

    def batch() -> tuple[int, float]:
        view = box.scheduler.view(box.clock.seconds()).bands[Band.BATCH]
        return view.depth, view.oldest_wait

    assert batch() == (2, 2.0)
    box.cancel(oldest)
    assert batch() == (1, 1.0)


@every_scheduler
def test_a_clock_that_goes_back_makes_no_negative_waits(make: MakeBox) -> None:
    box = make()
    box.fleet.ready.add("A")
    job = Ticket(number=1, model="A", priority=0, arrived=100.0)
    late = Ticket(number=2, model="B", priority=0, arrived=100.0)
    facts = Facts(now=100.0, running=frozenset("A"), ready=frozenset("A"))
    box.scheduler.arrived(job, facts)
    box.scheduler.arrived(late, facts)

    assert box.scheduler.view(50.0).bands[Band.NORMAL].oldest_wait == 0.0
    dispatch = box.scheduler.released(job, Facts(now=50.0, running=frozenset("A"), ready=frozenset("A")))[0]
    assert isinstance(dispatch, Dispatch)
    assert dispatch.verdict.waited == 0.0


@every_scheduler
def test_a_waiting_ticket_knows_its_place(make: MakeBox) -> None:
    box = make("ABC")
    box.fleet.ready.add("A")
    running = box.arrive("A", job=10.0)
    late = box.arrive("B", -100)
    early = box.arrive("C", 100)
    middle = box.arrive("B", 0)

    places = [box.scheduler.position(ticket, box.facts) for ticket in (running, early, middle, late)]

    assert places == [None, 1, 2, 3]


@every_scheduler
def test_places_are_the_order_in_which_tickets_go_if_nothing_changes(make: MakeBox) -> None:
    box = make("AB")
    box.fleet.load_time = 0.0
    box.arrive("A", job=5.0)
    waiting = [box.arrive("B", priority) for priority in (0, -5, 7, 0, 100)]

    places = {box.scheduler.position(ticket, box.facts): ticket.number for ticket in waiting}
    box.settle()

    assert [places[place] for place in sorted(p for p in places if p)] == box.dispatched[1:]


@every_scheduler
def test_of_a_paused_band_nobody_goes_until_it_is_resumed_and_then_at_once(make: MakeBox) -> None:
    box = make()
    box.fleet.ready.add("A")
    box.pause(Band.BATCH)
    box.arrive("A", -100)
    box.arrive("A", 0)
    assert box.dispatched == [2]

    box.advance(5.0)
    box.resume(Band.BATCH)
    assert box.dispatched == [2, 1]


@every_scheduler
def test_what_runs_or_loads_when_its_band_is_paused_goes_on(make: MakeBox) -> None:
    box = make()
    box.arrive("A")

    box.pause(*Band)
    box.settle()

    assert box.where(box.tickets[0]) is Life.ENDED


@every_scheduler
def test_with_all_bands_paused_the_queue_stands_and_the_rest_can_leave_or_be_unloaded(make: MakeBox) -> None:
    box = make()
    box.pause(*Band)
    tickets = [box.arrive("AB"[number % 2], 100 * (number % 3) - 100) for number in range(6)]

    box.cancel(tickets[0])
    box.settle()
    assert (box.dispatched, box.scheduler.waiting()) == ([], 5)
    assert not box.scheduler.wanted("A")

    box.resume(*Band)
    box.settle()
    assert sorted(box.served) == [2, 3, 4, 5, 6]


@every_scheduler
def test_paused_ones_stand_behind_all_others(make: MakeBox) -> None:
    box = make("ABC")
    box.fleet.ready.add("A")
    box.arrive("A", job=10.0)
    urgent, usual = box.arrive("B", 100), box.arrive("C", 0)

    box.pause(Band.INTERACTIVE)

    assert [box.scheduler.position(each, box.facts) for each in (usual, urgent)] == [1, 2]
    planned = list(box.scheduler.plan((), box.facts))
    assert [each.ticket.number for each in planned] == [usual.number, urgent.number]
    assert planned[-1].eta is None
    assert box.scheduler.view(1.0).paused == {Band.INTERACTIVE}


@every_scheduler
def test_another_priority_is_another_place_at_the_old_age(make: MakeBox) -> None:
    box = make("ABC")
    box.fleet.ready.add("A")
    box.arrive("A", job=10.0)
    first, second = box.arrive("B", 0), box.arrive("C", 0)
    box.advance(2.0)

    box.reprioritise(second, 50)
    assert [box.scheduler.position(each, box.facts) for each in (second, first)] == [1, 2]

    box.settle()
    assert box.dispatched == [1, 3, 2]
    assert box.verdicts[3].priority == 50
    assert box.verdicts[3].waited == 10.0


@every_scheduler
def test_another_priority_may_lead_out_of_a_paused_band_or_into_it(make: MakeBox) -> None:
    box = make()
    box.fleet.ready.add("A")
    box.pause(Band.BATCH)
    out = box.arrive("A", -100, job=10.0)

    box.reprioritise(out, 0)
    assert box.dispatched == [1]

    box.reprioritise(box.arrive("B", 0), -1)
    box.settle()
    assert box.dispatched == [1]


@every_scheduler
def test_who_does_not_wait_gets_no_other_priority(make: MakeBox) -> None:
    box = make()
    job = box.arrive("A")

    with pytest.raises(KeyError):
        box.scheduler.reprioritise(job, 5, box.facts)


@every_scheduler
def test_who_got_another_priority_is_known_by_its_number(make: MakeBox) -> None:
    box = make("AB")
    box.fleet.ready.add("A")
    box.arrive("A", job=10.0)
    old = box.arrive("B", 0)

    box.reprioritise(old, -100)

    now = box.scheduler.ticket(old.number)
    assert now is not None
    assert now.priority == -100
    assert box.scheduler.position(old, box.facts) == 1
    box.cancel(old)
    assert box.scheduler.waiting() == 0
    assert box.scheduler.ticket(old.number) is None


@every_scheduler
def test_a_plan_names_all_who_wait_in_order_and_can_skip(make: MakeBox) -> None:
    box = make("ABC")
    box.fleet.ready.add("A")
    job = box.arrive("A", job=10.0)
    for priority in (0, 5, -100, 100):
        box.arrive("B", priority)
    jobs = (Job(ticket=job, loading=False, since=0.0),)

    numbers = [each.ticket.number for each in box.scheduler.plan(jobs, box.facts)]

    assert numbers == [5, 3, 2, 4]
    assert [each.ticket.number for each in box.scheduler.plan(jobs, box.facts, skip=3)] == [4]
    assert all(each.swap for each in box.scheduler.plan(jobs, box.facts, skip=4))
    box.pause(Band.NORMAL)
    assert [each.ticket.number for each in box.scheduler.plan(jobs, box.facts, skip=1)] == [4, 3, 2]
    assert [each.ticket.number for each in box.scheduler.plan(jobs, box.facts, skip=3)] == [2]
