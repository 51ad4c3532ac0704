"""What is learned from jobs and loads, and what is told of the box."""

from __future__ import annotations

from llamaswap.config.model import SchedulerName, SerialSettings
from llamaswap.measuring import Measures
from llamaswap.scheduling.estimates import Estimates
from llamaswap.scheduling.vocabulary import Band
from support.dispatch_rig import DispatchRig, Tally


def test_jobs_and_loads_are_learned_in_seconds() -> None:
    rig = DispatchRig("a")
    caller = rig.call("a")
    rig.clock.advance(4.0)
    rig.becomes_ready("a")
    rig.clock.advance(2.0)

    caller.finish()

    run, load = rig.estimates.run("a"), rig.estimates.load("a")
    assert run is not None
    assert load is not None
    assert (run.count, round(run.p50, 1)) == (1, 2.0)
    assert (load.count, round(load.p50, 1)) == (1, 4.0)


def test_what_was_not_answered_to_its_end_teaches_nothing() -> None:
    rig = DispatchRig("a")
    rig.call("a").leave()
    rig.becomes_ready("a")
    left, failed = rig.call("a"), rig.call("a")

    left.leave()
    assert failed.lease is not None
    rig.dispatcher.cut_short(failed.lease)
    failed.finish()

    assert rig.estimates.run("a") is None


def test_a_lease_that_is_given_back_may_be_cut_short_without_harm() -> None:
    rig = DispatchRig("a")
    rig.warm("a")
    look, caller = rig.call("a", looks_only=True), rig.call("a")
    caller.finish()
    assert look.lease is not None
    assert caller.lease is not None

    rig.dispatcher.cut_short(look.lease)
    rig.dispatcher.cut_short(caller.lease)
    rig.call("a").finish()

    run = rig.estimates.run("a")
    assert run is not None
    assert run.count == 3


def test_under_fifo_nothing_is_learned_before_a_reload_asks_for_it() -> None:
    rig = DispatchRig("a", use=SchedulerName.FIFO)
    rig.warm("a")
    assert rig.estimates.run("a") is None

    rig.reload(SerialSettings())
    rig.call("a").finish()

    assert rig.estimates.run("a") is not None


def test_the_states_of_the_box_are_told_when_they_change() -> None:
    rig = DispatchRig("a", "b")
    first = rig.call("a")
    second = rig.call("a")
    rig.becomes_ready("a")
    first.finish()
    assert rig.tally.box_states == ["load", "run"]

    second.finish()
    rig.call("b").leave()
    rig.goes("a")
    rig.becomes_ready("b")

    assert rig.tally.box_states == ["load", "run", "idle", "load", "idle"]


def test_one_newcomer_a_second_is_told_later_how_wrong_the_forecast_was() -> None:
    rig = DispatchRig("a")
    rig.warm("a")
    for _ in range(20):
        rig.estimates.ran("a", 10.0)
    running = rig.call("a")
    rig.clock.advance(4.0)
    sample = rig.call("a")  # expects to go in about 6 s
    rig.call("a")  # in the same second: nobody looks

    rig.clock.advance(9.0)
    running.finish()
    sample.finish()

    ((band, seconds),) = rig.tally.missed
    assert band is Band.NORMAL
    assert 2.0 < seconds < 4.0


def test_a_forecast_counts_no_more_once_somebody_interferes() -> None:
    rig = DispatchRig("a")
    rig.warm("a")
    running = rig.call("a")
    moved = rig.call("a")
    rig.clock.advance(2.0)
    rig.call("a")

    rig.dispatcher.queueing.reprioritise(2 + 1, 100)
    rig.dispatcher.queueing.pause(frozenset({Band.BATCH}))
    running.finish()
    moved.finish()

    assert rig.tally.missed == []


def test_who_holds_which_model_is_known() -> None:
    measures = Measures(Tally(), Estimates())
    measures.serving[1] = ("a", 0.0, None)

    assert measures.holds("a")
    assert not measures.holds("b")


def test_a_look_and_a_greeting_teach_nothing_of_jobs() -> None:
    rig = DispatchRig("a", "b")
    greeting = rig.call("a", reason="preload")
    look = rig.call("b", looks_only=True)
    rig.clock.advance(4.0)
    rig.becomes_ready("a")
    greeting.finish()
    rig.goes("a")
    rig.becomes_ready("b")
    assert look.lease is not None and look.lease.verdict is not None
    look.finish()

    assert rig.estimates.run("a") is None
    assert rig.estimates.run("b") is None
    assert rig.estimates.load("a") is not None
