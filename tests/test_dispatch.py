"""What a caller of the dispatcher notices, whatever the scheduler, the children and other callers do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from twisted.internet.defer import Deferred

from llamaswap.config.model import GroupConfig, SchedulerName, SerialSettings
from llamaswap.errors import (
    LoadRefused,
    ModelFailing,
    ModelUnloaded,
    NotReady,
    QueueFull,
    ShuttingDown,
    TooManyRequests,
)
from llamaswap.processes.lifecycle import State
from llamaswap.scheduling.registry import make_scheduler
from llamaswap.scheduling.vocabulary import Band
from support.dispatch_rig import Caller, DispatchRig, nothing_goes_wrong, troubles
from support.processes_fakes import Outcome, a_model

APART = (
    GroupConfig(id="big", members=("a", "b")),
    GroupConfig(id="small", persistent=True, exclusive=False, swap=False, members=("embed",)),
)


def test_a_call_for_a_stopped_model_gets_its_lease_once_the_model_is_ready() -> None:
    rig = DispatchRig("a")
    caller = rig.call("a", 100)
    assert caller.waiting
    rig.clock.advance(2.0)

    rig.becomes_ready("a")

    assert caller.serving
    assert caller.lease is not None
    assert caller.lease.load == 2.0
    assert caller.lease.verdict is not None
    assert caller.lease.verdict.band is Band.INTERACTIVE
    assert caller.lease.server is rig.fleet["a"]


def test_a_call_for_a_resident_model_gets_its_lease_within_the_call() -> None:
    rig = DispatchRig("a")
    rig.warm("a")

    caller = rig.call("a")

    assert caller.serving
    assert caller.lease is not None
    assert caller.lease.load == 0.0


def test_leases_are_given_out_best_score_first_one_at_a_time() -> None:
    rig = DispatchRig("a")
    rig.warm("a")
    first = rig.call("a")
    batch, normal, interactive = rig.call("a", -100), rig.call("a"), rig.call("a", 100)

    for _ in range(4):
        rig.leased[-1].finish()

    assert rig.leased == [first, interactive, normal, batch]


def test_a_swap_waits_for_the_evicted_child_before_the_next_one_starts() -> None:
    rig = DispatchRig("a", "b")
    rig.warm("a")

    caller = rig.call("b")
    assert rig.child("a").signals == ["TERM"]
    assert rig.starts("b") == 0

    rig.goes("a")
    assert rig.starts("b") == 1
    rig.becomes_ready("b")
    assert caller.serving


def test_the_next_lease_is_given_in_the_turn_in_which_the_box_becomes_free() -> None:
    rig = DispatchRig("a")
    rig.warm("a")
    first, second = rig.call("a"), rig.call("a")

    first.finish()

    assert second.serving
    assert rig.clock.seconds() == 0.0


# Clients that leave.


def test_a_client_that_leaves_while_waiting_never_starts_a_load() -> None:
    rig = DispatchRig("a", "b")
    rig.warm("a")
    running = rig.call("a")
    waiting = rig.call("b", -100)
    rig.clock.advance(7.0)

    waiting.leave()
    running.finish()

    assert waiting.abandoned is not None
    assert waiting.abandoned.verdict is None
    assert waiting.abandoned.waited == 7.0
    assert rig.tally.abandoned_in == [Band.BATCH]
    assert rig.starts("b") == 0


def test_a_client_that_leaves_during_its_load_frees_the_box_and_the_load_goes_on() -> None:
    rig = DispatchRig("a")
    caller = rig.call("a")

    caller.leave()
    rig.becomes_ready("a")

    assert caller.abandoned is not None
    assert caller.abandoned.verdict is not None
    assert rig.tally.abandoned_in == []  # it had been dispatched: nobody waited any more
    assert rig.state("a") is State.READY
    assert rig.dispatcher.view().jobs == ()


def test_the_next_call_for_a_model_joins_the_load_that_its_client_left_behind() -> None:
    rig = DispatchRig("a")
    rig.call("a").leave()
    rig.clock.advance(1.0)
    second = rig.call("a")
    rig.clock.advance(2.0)

    rig.becomes_ready("a")

    assert second.serving
    assert second.lease is not None
    assert second.lease.load == 2.0
    assert rig.tally.began == ["a"]


def test_a_call_for_another_model_ends_the_load_that_nobody_claims() -> None:
    rig = DispatchRig("a", "b")
    rig.call("a").leave()

    second = rig.call("b")
    assert rig.child("a").signals == ["TERM"]
    rig.goes("a")
    rig.becomes_ready("b")

    assert second.serving
    assert rig.alive() == ["b"]


def test_a_resident_model_that_is_picked_ends_the_unclaimed_load_beside_it() -> None:
    rig = DispatchRig("a", "b", "embed", groups=APART)
    rig.warm("embed")
    rig.call("a").leave()

    second = rig.call("embed")

    assert second.serving
    assert rig.child("a").signals == ["TERM"]


def test_a_client_that_leaves_while_served_gives_the_box_to_the_next() -> None:
    rig = DispatchRig("a")
    rig.warm("a")
    first, second = rig.call("a"), rig.call("a")

    first.leave()

    assert first.left
    assert second.serving
    assert rig.fleet["a"].report().uses == 1


def test_ten_thousand_waiting_clients_may_leave_at_once() -> None:
    rig = DispatchRig("a", "b")
    rig.warm("a")
    running = rig.call("a")
    crowd = [rig.call("b") for _ in range(10_000)]
    late = rig.call("b")

    for caller in crowd:
        caller.leave()
    running.finish()
    rig.goes("a")
    rig.becomes_ready("b")

    assert late.serving
    assert rig.tally.began.count("b") == 1
    assert len(rig.tally.abandoned_in) == 10_000


def test_ten_thousand_waiting_clients_may_all_be_refused_at_once() -> None:
    rig = DispatchRig("a")
    rig.warm("a")
    running = rig.call("a")
    crowd = [rig.call("a") for _ in range(10_000)]

    rig.dispatcher.close()

    assert {type(caller.refusal) for caller in crowd} == {ShuttingDown}
    assert running.serving


def test_a_thousand_jobs_that_end_at_once_do_not_recurse() -> None:
    rig = DispatchRig("a")
    crowd = [rig.call("a", then=Caller.finish) for _ in range(1_000)]

    rig.becomes_ready("a")

    assert all(caller.done for caller in crowd)
    assert rig.dispatcher.view().jobs == ()


def test_everybody_who_waits_may_leave_when_the_first_is_served() -> None:
    rig = DispatchRig("a")
    crowd: list[Caller] = []

    def scatter(_: Caller) -> None:
        for caller in crowd[1:]:
            caller.leave()

    crowd += [rig.call("a", then=scatter) for _ in range(300)]
    rig.becomes_ready("a")

    assert rig.leased == crowd[:1]
    crowd[0].finish()
    assert rig.dispatcher.view().jobs == ()


def test_a_refused_caller_may_take_the_next_one_with_it() -> None:
    rig = DispatchRig("a", "b")
    friends: list[Caller] = []
    rig.warm("b")
    loading = rig.call("a", then=lambda _: friends[0].leave())
    rig.goes("b")
    friends.append(rig.call("b"))
    third = rig.call("b")

    rig.child("a").exits(1)  # [Refuse(loading), Dispatch(friend), Load(b)]: the friend leaves in the middle
    rig.becomes_ready("b")

    assert isinstance(loading.refusal, LoadRefused)
    assert friends[0].abandoned is not None
    assert third.serving
    assert len(rig.tally.verdicts) == 3  # warm's, loading's and third's: the friend never was
    assert rig.tally.abandoned_in == [Band.NORMAL]


def test_a_refused_caller_may_take_the_next_one_with_it_although_its_model_is_resident() -> None:
    rig = DispatchRig("a", "embed", groups=(*APART[1:], GroupConfig(id="big", members=("a",))))
    friends: list[Caller] = []
    rig.warm("embed")
    rig.call("a", then=lambda _: friends[0].leave())
    friends.append(rig.call("embed"))
    third = rig.call("embed")

    rig.child("a").exits(1)  # [Refuse(loading), Dispatch(friend), Serve(friend)]

    assert friends[0].abandoned is not None
    assert friends[0].lease is None
    assert third.serving


def test_a_caller_may_ask_again_from_within_its_refusal() -> None:
    rig = DispatchRig("a")
    again: list[Caller] = []
    rig.call("a", then=lambda _: again.append(rig.call("a")))

    rig.child("a").exits(1)
    rig.becomes_ready("a")

    assert again[0].serving


# Loads that fail.


def test_a_failed_load_refuses_its_caller_and_the_next_model_never_notices() -> None:
    rig = DispatchRig("a", "b")
    broken = rig.call("a", 100)
    other = rig.call("b")
    rig.child("a").says("out of memory")

    rig.child("a").exits(1)
    rig.becomes_ready("b")

    assert isinstance(broken.refusal, LoadRefused)
    assert "exited with code 1" in broken.refusal.message
    assert "out of memory" in broken.refusal.message
    assert other.serving
    assert rig.tally.ended == [("b", 0.0)]


def test_a_program_that_cannot_be_started_refuses_its_caller() -> None:
    rig = DispatchRig("a")
    rig.children["a"].refusal = "no such file: serve"

    caller = rig.call("a")

    assert isinstance(caller.refusal, LoadRefused)
    assert "no such file: serve" in caller.refusal.message
    assert rig.dispatcher.view().jobs == ()


def test_after_three_failures_in_a_row_everybody_who_waits_for_the_model_is_told() -> None:
    rig = DispatchRig("a")
    callers = [rig.call("a") for _ in range(5)]

    for _ in range(3):
        rig.child("a").exits(1)

    refusals = [type(caller.refusal) for caller in callers]
    assert refusals == [LoadRefused, LoadRefused, ModelFailing, ModelFailing, ModelFailing]
    assert isinstance(rig.call("a").refusal, ModelFailing)
    rig.clock.advance(5.0)
    assert rig.call("a").waiting


def test_a_child_that_dies_between_its_readiness_and_the_lease_answers_503_and_frees_the_box() -> None:
    rig = DispatchRig("a", "b")
    loading = rig.call("a")
    other = rig.call("b", -100)
    rig.tally.when_loaded = rig.child("a").is_killed
    rig.becomes_ready("a")
    rig.tally.when_loaded = lambda: None

    assert isinstance(loading.refusal, NotReady)
    assert loading.refusal.status == 503
    rig.becomes_ready("b")
    assert other.serving


# Unloading.


def test_unloading_while_a_model_loads_fails_its_job_and_keeps_those_who_wait() -> None:
    rig = DispatchRig("a")
    loading, waiting = rig.call("a"), rig.call("a")

    done = Outcome(unload(rig, "a"))

    assert isinstance(loading.refusal, ModelUnloaded)
    assert waiting.waiting
    assert done.pending
    rig.goes("a")
    assert done.succeeded
    rig.becomes_ready("a")
    assert waiting.serving


def test_unloading_while_a_model_serves_leaves_the_job_to_its_upstream() -> None:
    rig = DispatchRig("a")
    rig.warm("a")
    running, waiting = rig.call("a"), rig.call("a")

    done = Outcome(unload(rig, "a"))
    assert rig.child("a").signals == ["TERM"]
    rig.goes("a")
    assert done.succeeded
    running.finish()  # its connection has broken
    rig.becomes_ready("a")

    assert waiting.serving
    assert rig.starts("a") == 2


@pytest.mark.parametrize("unloaded", ["ab", "ba", "a"])
def test_what_is_picked_because_an_unload_has_failed_a_job_is_not_half_unloaded(unloaded: str) -> None:
    rig = DispatchRig("a", "b")
    rig.warm("a")
    job = rig.call("a")
    assert job.lease is not None
    rig.child("a").is_killed()
    revived = Deferred.fromCoroutine(rig.dispatcher.revive(job.lease))
    revived.addErrback(lambda _failure: job.finish())  # its load ends with the stop, and the job with that
    rig.clock.advance(1.0)
    following, last = rig.call("a"), rig.call("b")

    done = Outcome(unload(rig, *unloaded))
    rig.goes("a")
    assert done.succeeded
    for caller, model in ((following, "a"), (last, "b")):
        assert caller.waiting
        assert [job.model for job in rig.dispatcher.view().jobs] == [model]
        assert list(rig.dispatcher._box.loads.under_way) == [model], "each load is somebody's"
        rig.becomes_ready(model)
        assert caller.serving
        caller.finish()
        if model == "a":
            rig.goes("a")


def test_unloading_what_does_not_run_is_done_at_once() -> None:
    rig = DispatchRig("a", "b")

    assert Outcome(unload(rig, "a", "b")).succeeded


def test_unloading_after_the_end_is_done_at_once_without_a_word() -> None:
    rig = DispatchRig("a", "b")
    rig.stop_fleet()

    with nothing_goes_wrong():
        assert Outcome(unload(rig, "a", "b")).succeeded


def test_whoever_asked_for_an_unload_may_leave_and_the_model_stops_all_the_same() -> None:
    rig = DispatchRig("a")
    rig.warm("a")

    with nothing_goes_wrong():
        asked = unload(rig, "a")
        asked.addErrback(lambda _: None)
        asked.cancel()
        del asked
        rig.goes("a")

    assert rig.state("a") is State.STOPPED


def test_an_unload_of_a_model_whose_rival_is_still_leaving_starts_nothing() -> None:
    rig = DispatchRig("a", "b")
    rig.warm("b")
    loading = rig.call("a")
    assert rig.alive() == ["b"]

    with nothing_goes_wrong():
        unload(rig, "a")
        assert rig.starts("a") == 0
        rig.goes("b")

    assert isinstance(loading.refusal, ModelUnloaded)
    assert rig.alive() == []


def test_a_load_that_was_ended_says_nothing_about_the_one_that_follows_it() -> None:
    rig = DispatchRig("a", "b")
    rig.warm("b")
    first, second = rig.call("a"), rig.call("a")

    unload(rig, "a")
    rig.goes("b")
    rig.becomes_ready("a")

    assert isinstance(first.refusal, ModelUnloaded)
    assert second.serving
    assert rig.starts("a") == 1


def test_a_call_that_ends_an_unclaimed_load_never_lets_two_rivals_run() -> None:
    rig = DispatchRig("a", "b", "c")
    rig.warm("c")
    rig.call("a").leave()  # while c is still on its way out
    caller = rig.call("b")

    with nothing_goes_wrong():
        assert rig.alive() == ["c"]
        rig.goes("c")
        assert rig.alive() == ["b"]
        rig.becomes_ready("b")

    assert caller.serving
    assert rig.starts("a") == 0


def test_an_evicted_load_reports_nothing() -> None:
    rig = DispatchRig("a", "b")
    rig.call("a").leave()
    caller = rig.call("b")

    rig.child("a").exits(1)

    assert caller.waiting
    rig.becomes_ready("b")
    assert caller.serving
    assert rig.tally.ended == [("b", 0.0)]


# Calls that only look.


def test_a_call_that_only_looks_passes_the_queue_of_a_resident_model() -> None:
    rig = DispatchRig("a")
    rig.warm("a")
    running, waiting = rig.call("a"), rig.call("a")

    look = rig.call("a", -1000, looks_only=True)

    assert look.serving
    assert look.lease is not None
    assert look.lease.verdict is None
    assert waiting.waiting
    look.finish()
    assert running.serving
    assert waiting.waiting
    assert len(rig.tally.verdicts) == 2


def test_a_call_that_only_looks_waits_its_turn_for_a_model_that_is_not_resident() -> None:
    rig = DispatchRig("a", "b")
    rig.warm("a")
    running = rig.call("a")

    look = rig.call("b", looks_only=True)
    assert look.waiting
    running.finish()
    rig.goes("a")
    rig.becomes_ready("b")

    assert look.serving
    assert look.lease is not None
    assert look.lease.verdict is not None


def test_under_fifo_a_call_that_only_looks_is_like_any_other() -> None:
    rig = DispatchRig("a", use=SchedulerName.FIFO)
    rig.warm("a")

    look = rig.call("a", looks_only=True)

    assert look.lease is not None
    assert look.lease.verdict is not None


def test_under_fifo_ready_models_serve_several_at_once_up_to_the_limit() -> None:
    rig = DispatchRig(a_model(id="a", concurrency_limit=2), use=SchedulerName.FIFO)
    rig.warm("a")

    callers = [rig.call("a") for _ in range(3)]

    assert [caller.serving for caller in callers] == [True, True, False]
    assert isinstance(callers[2].refusal, TooManyRequests)


# Time to live.


def test_a_model_never_expires_while_a_ticket_for_it_waits() -> None:
    rig = DispatchRig(a_model(id="a", ttl=5), a_model(id="embed"), groups=(
        GroupConfig(id="one", members=("a",), exclusive=False),
        GroupConfig(id="two", members=("embed",), exclusive=False),
    ))  # fmt: skip
    rig.warm("a")
    rig.warm("embed")
    running = rig.call("embed")
    waiting = rig.call("a")

    rig.clock.pump([1.0] * 60)
    assert rig.state("a") is State.READY

    waiting.leave()
    rig.clock.pump([1.0] * 2)
    assert rig.child("a").signals == ["TERM"]
    assert running.serving


def test_time_to_live_counts_from_the_end_of_the_last_use_a_look_included() -> None:
    rig = DispatchRig(a_model(id="a", ttl=5))
    rig.warm("a")
    look = rig.call("a", looks_only=True)
    rig.clock.pump([1.0] * 20)
    assert rig.state("a") is State.READY

    look.finish()
    rig.clock.pump([1.0] * 4)
    assert rig.state("a") is State.READY
    rig.clock.pump([1.0] * 2)
    assert rig.child("a").signals == ["TERM"]


# Closing.


def test_closing_refuses_who_waits_and_who_comes_and_leaves_the_running_job_alone() -> None:
    rig = DispatchRig("a")
    rig.warm("a")
    running, waiting = rig.call("a"), rig.call("a")

    rig.dispatcher.close()

    assert isinstance(waiting.refusal, ShuttingDown)
    assert isinstance(rig.call("a").refusal, ShuttingDown)
    idle = Outcome(rig.dispatcher.when_idle())
    assert idle.pending
    running.finish()
    assert idle.succeeded


def test_an_idle_dispatcher_says_so_at_once_and_to_everybody_who_asks() -> None:
    rig = DispatchRig("a")

    assert Outcome(rig.dispatcher.when_idle()).succeeded
    assert Outcome(rig.dispatcher.when_idle()).succeeded


def test_a_job_whose_load_fails_while_we_close_leaves_the_dispatcher_idle() -> None:
    rig = DispatchRig("a")
    loading = rig.call("a")
    rig.dispatcher.close()
    idle = Outcome(rig.dispatcher.when_idle())
    assert idle.pending

    rig.child("a").exits(1)

    assert loading.refusal is not None
    assert idle.succeeded


def test_a_client_that_leaves_its_load_while_we_close_leaves_the_dispatcher_idle() -> None:
    rig = DispatchRig("a")
    loading = rig.call("a")
    rig.dispatcher.close()
    idle = Outcome(rig.dispatcher.when_idle())

    loading.leave()

    assert idle.succeeded


def test_who_still_waits_for_a_load_at_the_end_is_refused() -> None:
    rig = DispatchRig("a", "b")
    rig.warm("b")
    loading = rig.call("a")
    rig.dispatcher.close()
    idle = Outcome(rig.dispatcher.when_idle())

    with nothing_goes_wrong():
        rig.dispatcher.abandon_loads()
        rig.dispatcher.refuse_the_rest()
        rig.stop_fleet()

    assert isinstance(loading.refusal, ShuttingDown)
    assert rig.starts("a") == 0
    assert not idle.failure


def test_abandoned_loads_report_nothing_and_their_callers_can_still_leave() -> None:
    rig = DispatchRig("a", "b")
    rig.warm("b")
    caller = rig.call("a")

    with nothing_goes_wrong():
        rig.dispatcher.close()
        rig.stop_fleet()
        assert caller.waiting
        caller.leave()

    assert caller.abandoned is not None
    assert caller.abandoned.verdict is not None
    assert rig.alive() == []
    assert rig.starts("a") == 0


def test_an_hour_of_waiting_is_not_lost_when_the_box_becomes_free() -> None:
    rig = DispatchRig("a", serial=SerialSettings(aging_divisor=60.0, swap_affinity_bonus=0))
    rig.warm("a")
    running = rig.call("a")
    old = rig.call("a", -10)
    rig.clock.advance(3600.0)
    fresh = rig.call("a", 40)

    running.finish()

    assert old.serving
    assert fresh.waiting
    assert old.lease is not None
    assert old.lease.verdict is not None
    assert old.lease.verdict.waited == 3600.0


@pytest.mark.parametrize("use", list(SchedulerName))
def test_what_is_wanted_is_what_somebody_waits_for_loads_or_runs(use: SchedulerName) -> None:
    rig = DispatchRig("a", "b", use=use)
    assert not rig.dispatcher.wanted("a")
    caller = rig.call("a")
    assert rig.dispatcher.wanted("a")
    rig.becomes_ready("a")
    assert rig.dispatcher.wanted("a")
    assert not rig.dispatcher.wanted("b")
    caller.finish()
    assert not rig.dispatcher.wanted("a")


def unload(rig: DispatchRig, *models: str) -> Deferred[None]:
    """Ask for an unload."""
    return Deferred.fromCoroutine(rig.dispatcher.unload(frozenset(models)))


@pytest.mark.parametrize("use", list(SchedulerName))
def test_a_newcomer_that_would_have_to_wait_is_refused_when_as_many_wait_as_may(use: SchedulerName) -> None:
    rig = DispatchRig("a", "b", use=use)
    rig.warm("a")
    running = rig.call("a")
    rig.allow_waiting(2)
    waiting = [rig.call("b") for _ in range(2)]
    places: list[Callable[[], int | None]] = []

    refused = rig.call("b", 100, queued=places.append)

    assert isinstance(refused.refusal, QueueFull)
    assert (refused.refusal.status, refused.refusal.retry_after) == (503, 5)
    assert rig.reached == ["waiting"]
    assert places == []
    assert all(caller.waiting for caller in waiting)

    waiting[0].leave()
    last = rig.call("b")
    assert last.waiting
    running.finish()
    rig.goes("a")
    rig.becomes_ready("b")
    waiting[1].finish()
    assert last.serving or last.done


def test_who_need_not_wait_is_served_however_many_wait() -> None:
    apart = [
        GroupConfig(id="x", members=("a",), exclusive=False),
        GroupConfig(id="y", members=("b",), exclusive=False),
    ]
    rig = DispatchRig("a", "b", use=SchedulerName.FIFO, groups=apart)
    rig.warm("a")
    rig.allow_waiting(1)
    rig.call("b")
    rig.call("b")

    assert rig.call("a").serving
    assert rig.reached == []


def test_a_refused_newcomer_takes_no_place_of_its_model() -> None:
    rig = DispatchRig(a_model(id="a", concurrency_limit=2))
    rig.warm("a")
    running = rig.call("a")
    rig.allow_waiting(0)

    assert isinstance(rig.call("a").refusal, QueueFull)
    assert isinstance(rig.call("a").refusal, QueueFull)  # not TooManyRequests

    running.finish()
    assert rig.call("a").serving


def test_those_who_wait_keep_their_places_when_a_reload_allows_fewer() -> None:
    rig = DispatchRig("a")
    rig.warm("a")
    running = rig.call("a")
    waiting = [rig.call("a") for _ in range(3)]

    rig.allow_waiting(1)
    rig.dispatcher.reconfigure(make_scheduler(rig.config))

    assert all(caller.waiting for caller in waiting)
    assert isinstance(rig.call("a").refusal, QueueFull)
    running.finish()
    assert waiting[0].serving


def test_somebody_who_fails_when_told_that_he_waits_still_gets_his_lease_and_gives_it_back() -> None:
    rig = DispatchRig("a")
    rig.warm("a")
    holder = rig.call("a")

    def queued(_position: object) -> None:
        raise ZeroDivisionError

    with troubles() as seen:
        waiting, next_one = rig.call("a", queued=queued), rig.call("a")
    assert waiting.waiting
    assert len(seen) == 1

    holder.finish()
    waiting.finish()

    assert waiting.done
    assert next_one.serving


def test_a_box_that_stands_still_can_be_closed() -> None:
    rig = DispatchRig("a")
    rig.warm("a")
    running = rig.call("a")
    rig.dispatcher.queueing.pause(frozenset(Band))
    waiting = [rig.call("a", priority) for priority in (-100, 0, 100)]

    rig.dispatcher.close()
    idle = rig.dispatcher.when_idle()
    assert all(isinstance(caller.refusal, ShuttingDown) for caller in waiting)
    assert not idle.called

    running.finish()

    assert idle.called
