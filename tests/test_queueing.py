"""What people ask about the queue, and what becomes of what they tell it."""

from __future__ import annotations

import pytest

from llamaswap.config.model import SchedulerName, SerialSettings
from llamaswap.errors import DeadlinePassed, NeedsSerial, NoSuchTicket
from llamaswap.scheduling.vocabulary import Band
from support.dispatch_rig import Caller, DispatchRig, nothing_goes_wrong

ALL = frozenset(Band)


def busy(*models: str, **settings: object) -> DispatchRig:
    """A box on which `a` serves somebody: ticket 2."""
    rig = DispatchRig(*(models or ("a",)), serial=SerialSettings(**settings))  # type: ignore[arg-type]  # as given
    rig.warm("a")
    rig.call("a")
    return rig


def order(rig: DispatchRig) -> list[int]:
    """The numbers of those who wait, in the order in which they go."""
    return [row.ticket.number for row in rig.dispatcher.queueing.queue().tickets]


def test_the_queue_shows_who_waits_in_order_and_what_runs() -> None:
    rig = busy("a", "b")
    rig.clock.advance(3.0)
    rig.call("b", 100)
    rig.call("a", -100)
    rig.call("a")
    rig.clock.advance(60.0)

    page = rig.dispatcher.queueing.queue()

    assert [(row.ticket.number, row.position, row.swap) for row in page.tickets] == [
        (3, 1, True),
        (5, 2, True),
        (4, 3, False),
    ]
    first = page.tickets[0]
    assert first.terms is not None
    assert (first.waited, first.band, first.paused, first.max_wait) == (60.0, Band.INTERACTIVE, False, None)
    assert (first.terms.score, first.terms.aging, first.terms.affinity) == (101_000, 1000, 0)
    (job,) = page.jobs
    assert (job.ticket.number, job.loading, job.lasted, job.waited) == (2, False, 63.0, 0.0)
    assert page.waiting == 3
    assert page.serial
    assert page.bands[Band.BATCH].depth == 1


def test_a_job_that_loads_is_shown_with_how_long_it_loads() -> None:
    rig = busy("a", "b")
    rig.call("b")
    rig.clock.advance(5.0)
    rig.leased[0].finish()
    rig.clock.advance(2.0)

    (job,) = rig.dispatcher.queueing.queue().jobs

    assert (job.ticket.number, job.loading, job.lasted, job.waited) == (3, True, 2.0, 5.0)


def test_pages_follow_each_other() -> None:
    rig = busy()
    for priority in range(10):
        rig.call("a", priority)
    queueing = rig.dispatcher.queueing
    whole = order(rig)

    pages = [queueing.queue(offset, 4).tickets for offset in (0, 4, 8, 12)]

    assert [row.ticket.number for page in pages for row in page] == whole
    assert [len(page) for page in pages] == [4, 4, 2, 0]


def test_under_fifo_the_queue_is_shown_without_scores_and_nobody_can_change_it() -> None:
    rig = DispatchRig("a", "b", use=SchedulerName.FIFO)
    rig.warm("a")
    rig.call("a")
    rig.call("b")
    queueing = rig.dispatcher.queueing

    page = queueing.queue()

    assert [(row.ticket.number, row.terms, row.eta, row.position) for row in page.tickets] == [
        (3, None, None, 1)
    ]
    assert not page.serial
    for ask in (
        lambda: queueing.explain(3),
        lambda: queueing.reprioritise(3, 1),
        lambda: queueing.pause(ALL),
        lambda: queueing.resume(ALL),
    ):
        with pytest.raises(NeedsSerial):
            ask()


def test_one_who_waits_can_be_sent_away_under_fifo_too() -> None:
    rig = DispatchRig("a", "b", use=SchedulerName.FIFO)
    rig.warm("a")
    rig.call("a")
    waiting = rig.call("b")

    rig.dispatcher.queueing.cancel(3)

    assert waiting.abandoned is not None
    assert order(rig) == []


def test_one_ticket_is_explained() -> None:
    rig = busy("a", "b")
    ahead = rig.call("a")
    rig.call("b", 5)

    explained = rig.dispatcher.queueing.explain(4)

    assert ahead.waiting
    assert (explained.row.ticket.number, explained.row.position, explained.row.swap) == (4, 2, True)
    assert [(one.ticket.number, one.by) for one in explained.explanation.ahead] == [(3, ("swap_affinity",))]
    assert explained.explanation.position_without_affinity == 1
    assert {bound.band for bound in explained.explanation.bounds} == {Band.NORMAL, Band.INTERACTIVE}


@pytest.mark.parametrize("number", [1, 2, 99])
def test_who_does_not_wait_cannot_be_asked_for_nor_moved(number: int) -> None:
    rig = busy()
    queueing = rig.dispatcher.queueing

    with pytest.raises(NoSuchTicket):
        queueing.explain(number)
    with pytest.raises(NoSuchTicket):
        queueing.reprioritise(number, 1)
    with pytest.raises(NoSuchTicket):
        queueing.cancel(number)


# Moving.


def test_another_priority_keeps_the_age_and_the_place_among_equals() -> None:
    rig = busy(swap_affinity_bonus=0)
    old = rig.call("a", -100)
    rig.clock.advance(100.0)
    young = rig.call("a")

    rig.dispatcher.queueing.reprioritise(3, 0)
    rig.leased[0].finish()

    assert old.serving
    assert old.lease is not None
    assert old.lease.verdict is not None
    assert (old.lease.verdict.priority, old.lease.verdict.waited) == (0, 100.0)
    assert young.waiting


def test_who_was_moved_can_still_leave() -> None:
    rig = busy()
    moved = rig.call("a", -100)
    rig.dispatcher.queueing.reprioritise(3, 100)

    moved.leave()

    assert moved.abandoned is not None
    assert moved.abandoned.ticket.priority == 100
    assert moved.abandoned.metadata["serial_band"] == "interactive"
    assert rig.tally.abandoned_in == [Band.INTERACTIVE]
    assert order(rig) == []


def test_who_was_moved_asks_for_his_place_as_before() -> None:
    rig = busy()
    places: list[object] = []
    rig.call("a")
    rig.call("a", -100, queued=lambda place: places.append(place))

    (place,) = places
    assert callable(place)
    assert place() == 2
    rig.dispatcher.queueing.reprioritise(4, 100)

    assert place() == 1


def test_another_band_has_its_own_limit_which_counts_from_then() -> None:
    rig = busy(max_wait={"interactive": 30.0})
    moved = rig.call("a", -100)
    rig.clock.advance(3600.0)

    rig.dispatcher.queueing.reprioritise(3, 100)
    assert rig.dispatcher.queueing.queue().tickets[0].max_wait == 3630.0
    rig.clock.advance(29.0)
    assert moved.waiting
    rig.clock.advance(1.0)

    assert isinstance(moved.refusal, DeadlinePassed)


def test_within_a_band_the_limit_goes_on() -> None:
    rig = busy(max_wait={"normal": 30.0})
    moved = rig.call("a")
    rig.clock.advance(20.0)

    rig.dispatcher.queueing.reprioritise(3, 50)
    rig.clock.advance(10.0)

    assert isinstance(moved.refusal, DeadlinePassed)


# Sending away.


def test_who_is_sent_away_learns_it_as_if_he_had_been_cancelled() -> None:
    rig = busy()
    waiting, next_one = rig.call("a"), rig.call("a")
    rig.clock.advance(4.0)

    with nothing_goes_wrong():
        rig.dispatcher.queueing.cancel(3)

    assert waiting.abandoned is not None
    assert waiting.abandoned.verdict is None
    assert waiting.abandoned.waited == 4.0
    rig.leased[0].finish()
    assert next_one.serving


# Pausing.


def test_a_paused_band_is_passed_over_and_goes_on_where_it_was() -> None:
    rig = busy()
    batch, normal = rig.call("a", -100), rig.call("a")
    queueing = rig.dispatcher.queueing

    queueing.pause(frozenset({Band.NORMAL}))
    assert queueing.paused == {Band.NORMAL}
    assert [(row.ticket.number, row.paused) for row in queueing.queue().tickets] == [(3, False), (4, True)]
    rig.leased[0].finish()
    assert batch.serving
    batch.finish()
    assert normal.waiting

    queueing.resume(frozenset({Band.NORMAL}))

    assert normal.serving


def test_when_all_is_paused_the_running_job_goes_on_and_nobody_else() -> None:
    rig = busy()
    crowd = [rig.call("a", priority) for priority in (-100, 0, 100)]
    rig.dispatcher.queueing.pause(ALL)

    rig.leased[0].finish()
    late = rig.call("a")

    assert all(caller.waiting for caller in (*crowd, late))
    assert rig.tally.box_states[-1] == "idle"
    rig.dispatcher.queueing.resume(ALL)
    assert crowd[2].serving


def test_a_pause_outlives_a_reload() -> None:
    rig = busy()
    rig.dispatcher.queueing.pause(frozenset({Band.BATCH}))

    rig.reload(SerialSettings())

    assert rig.dispatcher.queueing.paused == {Band.BATCH}


def test_a_pause_that_a_reload_takes_into_fifo_can_be_ended_there() -> None:
    rig = busy()
    queueing = rig.dispatcher.queueing
    queueing.pause(ALL)
    rig.leased[0].finish()
    waiting = rig.call("a")

    rig.reload(None)

    assert waiting.waiting
    queueing.resume(ALL)
    assert waiting.serving
    with pytest.raises(NeedsSerial):
        queueing.resume(ALL)


def test_what_is_told_while_something_is_carried_out_waits_its_turn() -> None:
    rig = busy()
    queueing = rig.dispatcher.queueing

    def meddle(_: Caller) -> None:
        queueing.reprioritise(5, 100)
        queueing.pause(frozenset({Band.NORMAL}))

    rig.call("a", 1, then=meddle)
    stays, moved = rig.call("a"), rig.call("a", -100)

    with nothing_goes_wrong():
        rig.leased[0].finish()
        rig.leased[1].finish()

    assert moved.serving
    assert stays.waiting
