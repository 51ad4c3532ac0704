"""Who may not wait, or no longer, as its caller notices it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from llamaswap.config.model import GroupConfig, SchedulerName, SerialSettings
from llamaswap.errors import BandFull, DeadlineHopeless, DeadlinePassed, QueueFull
from llamaswap.scheduling.vocabulary import Band
from support.dispatch_rig import Caller, DispatchRig, nothing_goes_wrong


def busy(*models: str, runs: float | None = None, **settings: object) -> DispatchRig:
    """A box on which `a` serves somebody.

    Args:
        runs: seconds that jobs of `a` take, as was measured; None: nothing was.
    """
    known: Mapping[str, object] = settings
    rig = DispatchRig(*(models or ("a",)), serial=SerialSettings(**known))  # type: ignore[arg-type]  # as given
    rig.warm("a")
    rig.estimates.keep(())
    if runs is not None:
        for _ in range(20):
            rig.estimates.ran("a", runs)
    rig.call("a")
    return rig


def timers(rig: DispatchRig) -> int:
    """How many calls are due that are about somebody who waits."""
    return len(rig.clock.getDelayedCalls())


def test_a_full_band_turns_newcomers_of_its_own_away() -> None:
    rig = busy(max_queue={"batch": 2})
    waiting = [rig.call("a", -100) for _ in range(2)]

    refused = rig.call("a", -1)
    others = [rig.call("a"), rig.call("a", 100)]

    assert isinstance(refused.refusal, BandFull)
    assert refused.refusal.status == 429
    assert refused.refusal.retry_after == 5
    assert all(caller.waiting for caller in (*waiting, *others))
    assert rig.tally.bounds == [(Band.BATCH, "queue_full")]
    assert rig.tally.abandoned_in == []


def test_who_goes_at_once_is_never_turned_away() -> None:
    rig = DispatchRig("a", serial=SerialSettings(max_queue={"batch": 1}, max_wait={"batch": 0.001}))

    loading = rig.call("a", -100, max_wait=0.0)
    rig.clock.advance(2.0)
    rig.becomes_ready("a")

    assert loading.serving
    assert rig.tally.bounds == []


def test_the_hint_of_a_full_band_is_when_the_next_of_it_goes() -> None:
    rig = busy(runs=40.0, max_queue={"batch": 1})
    rig.call("a", 100)
    rig.call("a", -100)

    refused = rig.call("a", -100)

    assert refused.refusal is not None
    assert refused.refusal.retry_after is not None
    assert 60 < refused.refusal.retry_after < 100


def test_a_row_of_somebody_turned_away_says_how_far_he_came() -> None:
    rig = busy(max_wait={"normal": 30.0})
    waiting = rig.call("a", 7)

    rig.clock.advance(30.0)

    assert isinstance(waiting.refusal, DeadlinePassed)
    assert waiting.refusal.noted == {
        "serial_priority": "7",
        "serial_band": "normal",
        "serial_queue_wait_ms": "30000",
    }


def test_a_deadline_that_cannot_be_met_is_said_at_once() -> None:
    rig = busy(runs=100.0, max_wait={"normal": 30.0})

    refused, urgent = rig.call("a"), rig.call("a", 100)

    assert isinstance(refused.refusal, DeadlineHopeless)
    assert refused.refusal.status == 503
    assert refused.refusal.noted["serial_queue_wait_ms"] == "0"
    assert urgent.waiting
    assert rig.tally.bounds == [(Band.NORMAL, "hopeless")]
    assert timers(rig) == 0


def ends(rig: DispatchRig, long: Caller, _ahead: Caller) -> None:
    """The job is over, and the next one begins."""
    long.finish()


def is_sent_away(rig: DispatchRig, _long: Caller, ahead: Caller) -> None:
    """Somebody sends the one who is ahead away."""
    rig.dispatcher.queueing.cancel(3)


def is_moved(rig: DispatchRig, _long: Caller, _ahead: Caller) -> None:
    """Somebody lets him wait behind others."""
    rig.dispatcher.queueing.reprioritise(3, -1)


def is_held_up(rig: DispatchRig, _long: Caller, _ahead: Caller) -> None:
    """Somebody lets his whole band wait."""
    rig.dispatcher.queueing.pause(frozenset({Band.INTERACTIVE}))


@pytest.mark.parametrize("happens", [ends, is_sent_away, is_moved, is_held_up])
def test_what_was_hopeless_need_not_be_so_any_more_once_somebody_is_out_of_the_way(
    happens: Callable[[DispatchRig, Caller, Caller], None],
) -> None:
    rig = busy(runs=20.0, max_wait={"normal": 30.0})
    ahead = rig.call("a", 100)
    assert isinstance(rig.call("a").refusal, DeadlineHopeless)

    happens(rig, rig.leased[0], ahead)

    assert rig.call("a").waiting


def test_a_deadline_that_passes_in_the_queue_frees_the_place() -> None:
    rig = busy("a", "b", max_wait={"normal": 30.0})
    late, patient = rig.call("b"), rig.call("a", -100)
    rig.clock.advance(29.9)
    assert late.waiting

    rig.clock.advance(0.1)

    assert isinstance(late.refusal, DeadlinePassed)
    assert late.refusal.status == 504
    assert rig.tally.bounds == [(Band.NORMAL, "deadline")]
    rig.leased[0].finish()
    assert patient.serving
    assert rig.starts("b") == 0


def test_who_is_dispatched_in_time_has_all_the_time_that_his_load_takes() -> None:
    rig = busy("a", "b", max_wait={"normal": 30.0})
    waiting = rig.call("b")
    rig.clock.advance(29.0)

    rig.leased[0].finish()
    rig.clock.advance(2.0)
    rig.goes("a")
    rig.clock.advance(2.0)
    rig.becomes_ready("b")

    assert waiting.serving
    assert rig.tally.bounds == []


def test_the_request_of_a_client_may_ask_for_less() -> None:
    rig = busy(max_wait={"normal": 30.0})
    short, usual, long = rig.call("a", max_wait=5.0), rig.call("a"), rig.call("a", max_wait=500.0)
    free = rig.call("a", 100, max_wait=40.0)

    rig.clock.advance(5.0)
    assert isinstance(short.refusal, DeadlinePassed)
    assert "5 s" in short.refusal.message
    rig.clock.advance(25.0)
    assert isinstance(usual.refusal, DeadlinePassed)
    assert isinstance(long.refusal, DeadlinePassed)
    rig.clock.advance(10.0)
    assert isinstance(free.refusal, DeadlinePassed)


def test_who_leaves_or_is_told_to_go_takes_his_timer_along() -> None:
    rig = busy(max_wait={"normal": 30.0})
    leaving, served, closed = rig.call("a"), rig.call("a"), rig.call("a")
    assert timers(rig) == 3

    leaving.leave()
    assert timers(rig) == 2
    rig.leased[0].finish()
    assert served.serving
    assert timers(rig) == 1
    rig.dispatcher.close()

    assert closed.refusal is not None
    assert timers(rig) == 0


def test_nobody_rings_after_the_end() -> None:
    rig = busy(max_wait={"normal": 30.0})
    waiting = rig.call("a")

    with nothing_goes_wrong():
        rig.dispatcher.refuse_the_rest()

    assert waiting.refusal is not None
    assert timers(rig) == 0


def test_a_reload_changes_the_limits_for_newcomers_only() -> None:
    rig = busy(max_wait={"normal": 30.0}, max_queue={"normal": 1})
    first = rig.call("a")

    rig.reload(SerialSettings(max_wait={"normal": 100.0}))
    second = rig.call("a")

    rig.clock.advance(30.0)
    assert isinstance(first.refusal, DeadlinePassed)
    rig.clock.advance(69.0)
    assert second.waiting
    rig.clock.advance(1.0)
    assert isinstance(second.refusal, DeadlinePassed)


def test_who_waits_with_a_limit_keeps_it_under_fifo_and_newcomers_have_none() -> None:
    rig = busy("a", "b", max_wait={"normal": 30.0})
    first = rig.call("b")

    rig.reload(None)
    second = rig.call("b", max_wait=1.0)
    rig.clock.advance(30.0)

    assert isinstance(first.refusal, DeadlinePassed)
    assert first.refusal.noted == {}
    assert second.waiting


def test_under_fifo_no_limit_counts() -> None:
    rig = DispatchRig("a", "b", use=SchedulerName.FIFO)
    rig.warm("a")
    rig.call("a")

    waiting = rig.call("b", max_wait=1.0)
    rig.clock.advance(100.0)

    assert waiting.waiting
    assert timers(rig) == 0


def test_what_is_loaded_at_the_start_may_wait_as_long_as_the_loads_before_it_take() -> None:
    rig = DispatchRig("a", "b", serial=SerialSettings(max_wait={"normal": 1.0}, max_queue={"normal": 1}))
    rig.call("a", reason="preload")
    others = [rig.call("b", reason="preload") for _ in range(2)]

    rig.clock.advance(2.0)

    assert all(caller.waiting for caller in others)
    assert isinstance(rig.call("b").refusal, BandFull)


@pytest.mark.parametrize("options", [{"reason": "preload"}, {"looks_only": True}], ids=["preload", "look"])
def test_the_loads_that_greetings_and_looks_need_make_nobody_hopeless_by_runs_that_never_come(
    options: Mapping[str, Any],
) -> None:
    rig = DispatchRig("a", "b", "c", serial=SerialSettings(max_wait={"normal": 30.0}))
    for model in ("a", "b"):
        for _ in range(20):
            rig.estimates.ran(model, 960.0)
            rig.estimates.loaded(model, 10.0)
    loading = [rig.call("a", **options), rig.call("b", 1, max_wait=1e6, **options)]
    rig.clock.advance(4.0)

    chat = rig.call("c")

    assert all(caller.waiting for caller in (*loading, chat))
    page = rig.dispatcher.queueing.queue()
    (job,), (second, third) = page.jobs, page.tickets
    assert job.remaining is not None and second.eta is not None and third.eta is not None
    assert (job.remaining.p50, second.eta.p50) == pytest.approx((6.0, 6.0), rel=0.02)
    assert third.eta.p50 == pytest.approx(16.0, rel=0.02)
    rig.becomes_ready("a")
    assert rig.dispatcher.queueing.queue().jobs[0].remaining is None
    assert rig.call("c").waiting


def test_what_is_loaded_at_the_start_has_no_deadline_in_another_band_either() -> None:
    rig = busy(max_wait={"batch": 5.0})
    greeting = rig.call("a", reason="preload")
    (row,) = rig.dispatcher.queueing.queue().tickets

    rig.dispatcher.queueing.reprioritise(row.ticket.number, -100)
    rig.clock.advance(6.0)

    assert greeting.waiting


def test_a_request_that_wants_no_wait_at_all_goes_now_or_not() -> None:
    rig = busy()

    refused = rig.call("a", max_wait=0.0)
    assert refused.waiting  # how long it would be, nobody knows
    rig.clock.advance(0.0)

    assert isinstance(refused.refusal, DeadlinePassed)


def test_the_limit_of_all_comes_before_that_of_a_band() -> None:
    rig = busy(max_queue={"normal": 1}, max_wait={"normal": 30.0})
    rig.call("a")
    rig.allow_waiting(1)

    refused = rig.call("a")

    assert isinstance(refused.refusal, QueueFull)
    assert rig.tally.bounds == []


def test_a_refused_newcomer_is_told_of_no_place() -> None:
    rig = busy(max_queue={"normal": 1})
    rig.call("a")
    told: list[object] = []

    rig.call("a", queued=told.append)

    assert told == []


def test_a_newcomer_who_asks_within_a_refusal_is_judged_by_the_queue_as_it_is_then() -> None:
    rig = busy(max_queue={"normal": 1}, max_wait={"normal": 30.0})
    again: list[Caller] = []
    rig.call("a", then=lambda _: again.append(rig.call("a")))

    rig.clock.advance(30.0)

    assert again[0].waiting
    rig.clock.advance(30.0)
    assert isinstance(again[0].refusal, DeadlinePassed)


def test_a_box_beside_the_queue_makes_no_difference() -> None:
    apart = [GroupConfig(id="x", members=("a", "b"), swap=False, exclusive=False)]
    rig = DispatchRig("a", "b", groups=apart, serial=SerialSettings(max_queue={"normal": 1}))
    rig.warm("a")
    rig.warm("b")
    rig.call("a")

    look = rig.call("b", looks_only=True)
    waiting, refused = rig.call("b"), rig.call("b")

    assert look.serving
    assert waiting.waiting
    assert isinstance(refused.refusal, BandFull)
