"""What those who need, stop and watch a model's server see of it."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import CancelledError

from llamaswap.processes.child import PortTaken
from llamaswap.processes.failures import LoadFailed, ServerGone, ServerStuck
from llamaswap.processes.lifecycle import State
from llamaswap.processes.server import LEGACY, LOOK_AGAIN, ServerReport
from llamaswap.processes.stopping import STUCK
from support.processes_fakes import FIRST_PID, FakeChild, Outcome, Rig

STOPPED, STARTING, READY, STOPPING, SHUTDOWN = State


def failure_of(outcome: Outcome) -> LoadFailed:
    assert isinstance(outcome.failure, LoadFailed)
    return outcome.failure


def test_a_server_that_is_needed_is_started_and_serves_once_it_answers_200() -> None:
    rig = Rig()

    outcome = Outcome(rig.server.ensure_ready())

    assert outcome.pending
    rig.becomes_healthy()
    assert outcome.succeeded
    assert rig.changes == [(STOPPED, STARTING), (STARTING, READY)]
    assert rig.server.loads == 1


@pytest.mark.parametrize("starts", [False, True])  # it fails before or after there is a child
def test_a_mistake_of_ours_in_a_start_is_no_start_that_lasts_for_ever(
    starts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = Rig()
    where = "ask" if starts else "spawn"

    def fail(*_how: object, **_more: object) -> Any:
        raise RuntimeError("out of luck")

    with monkeypatch.context() as patch:
        patch.setattr(rig.prober if starts else rig.children, where, fail)
        outcome = Outcome(rig.server.ensure_ready())

    assert "out of luck" in failure_of(outcome).why
    for child in rig.children.alive:
        assert child.signals == ["TERM"]
        child.exits()
    again = Outcome(rig.server.ensure_ready())
    rig.becomes_healthy()
    assert again.succeeded


def test_everybody_who_needs_it_meanwhile_joins_the_same_start() -> None:
    rig = Rig()
    first, second = Outcome(rig.server.ensure_ready()), Outcome(rig.server.ensure_ready())

    rig.becomes_healthy()

    assert first.succeeded
    assert second.succeeded
    assert len(rig.children.started) == 1


def test_a_ready_server_is_ready_at_once() -> None:
    rig = Rig()
    rig.load()

    assert Outcome(rig.server.ensure_ready()).succeeded
    assert len(rig.children.started) == 1


def test_a_waiter_that_leaves_does_not_end_the_load() -> None:
    rig = Rig()
    leaving = Outcome(rig.server.ensure_ready())
    staying = Outcome(rig.server.ensure_ready())

    leaving.deferred.cancel()
    rig.becomes_healthy()

    assert isinstance(leaving.failure, CancelledError)
    assert staying.succeeded
    assert leaving.times == staying.times == 1


def test_the_load_goes_on_when_its_only_waiter_leaves() -> None:
    rig = Rig()
    outcome = Outcome(rig.server.ensure_ready())

    outcome.deferred.cancel()
    rig.becomes_healthy()

    assert rig.server.state is READY


def test_no_endpoint_to_check_means_ready_as_soon_as_it_runs() -> None:
    rig = Rig(check_endpoint=" none ")

    assert Outcome(rig.server.ensure_ready()).succeeded
    assert rig.prober.asked == []


def test_a_child_that_dies_while_starting_fails_its_waiters_at_once_with_its_last_words() -> None:
    rig = Rig()
    outcome = Outcome(rig.server.ensure_ready())
    rig.child.says("cannot open model.gguf")

    rig.child.exits(1)

    error = failure_of(outcome)
    assert error.model == "m"
    assert error.why == "upstream command exited prematurely: exited with code 1"
    assert error.output == ("cannot open model.gguf",)
    assert rig.changes == [(STOPPED, STARTING), (STARTING, STOPPED)]


def test_a_child_that_dies_without_a_word_leaves_nothing_to_add() -> None:
    rig = Rig()
    outcome = Outcome(rig.server.ensure_ready())

    rig.child.exits(1)

    error = failure_of(outcome)
    assert (error.why, error.output) == ("upstream command exited prematurely", ())


def test_last_words_are_those_of_the_child_that_failed() -> None:
    rig = Rig()
    rig.load().says("from an earlier life")
    rig.child.exits(0)
    outcome = Outcome(rig.server.ensure_ready())

    rig.child.exits(1)

    assert failure_of(outcome).output == ()


def test_a_failed_start_leaves_the_next_one_a_clean_slate() -> None:
    rig = Rig()
    Outcome(rig.server.ensure_ready())
    rig.child.exits(1)

    again = Outcome(rig.server.ensure_ready())
    rig.becomes_healthy()

    assert again.succeeded


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"proxy": ""}, "proxy '' is not an http:// or https:// URL"),
        ({"proxy": "unix:/run/x"}, "proxy 'unix:/run/x' is not an http:// or https:// URL"),
    ],
)
def test_what_cannot_be_started_fails_at_once_through_both_states(changes: dict[str, Any], why: str) -> None:
    rig = Rig(**changes)

    outcome = Outcome(rig.server.ensure_ready())

    assert failure_of(outcome).why == why
    assert rig.changes == [(STOPPED, STARTING), (STARTING, STOPPED)]


def test_a_missing_program_fails_at_once_and_is_named_with_the_model() -> None:
    rig = Rig()
    rig.children.refusal = "failed to start command '/no/such': no such file"

    outcome = Outcome(rig.server.ensure_ready())

    assert str(failure_of(outcome)) == "m: failed to start command '/no/such': no such file"
    assert rig.server.state is STOPPED


def test_a_child_that_is_late_fails_its_waiters_with_the_status_and_the_key_then_goes() -> None:
    rig = Rig(health_check_timeout=15)
    outcome = Outcome(rig.server.ensure_ready())
    rig.prober.answers(404)

    rig.clock.advance(0.1)
    rig.clock.advance(14.9)

    assert failure_of(outcome).why == (
        "health check timed out after 15s: checkEndpoint '/health' last answered with status 404"
    )
    assert rig.child.signals == ["TERM"]
    rig.clock.advance(5.0)
    assert rig.child.signals == ["TERM", "KILL"]
    rig.child.is_killed()
    assert rig.changes == [(STOPPED, STARTING), (STARTING, STOPPED)]


def test_whoever_comes_while_a_late_child_is_going_gets_a_fresh_one() -> None:
    rig = Rig(health_check_timeout=15)
    Outcome(rig.server.ensure_ready())
    rig.clock.advance(15.0)
    second = Outcome(rig.server.ensure_ready())

    rig.child.exits()
    assert len(rig.children.started) == 2
    rig.becomes_healthy()

    assert second.succeeded


def test_a_child_that_dies_while_serving_stops_the_server_and_the_next_need_restarts_it() -> None:
    rig = Rig()
    rig.load().is_killed("6 (SIGABRT)")

    assert rig.server.state is STOPPED
    assert rig.load().pid == FIRST_PID + 1
    assert rig.server.loads == 2


def test_a_stop_asks_and_fires_when_the_child_has_gone() -> None:
    rig = Rig()
    child = rig.load()

    outcome = Outcome(rig.server.stop())

    assert child.signals == ["TERM"]
    assert outcome.pending
    assert rig.server.state is STOPPING
    child.exits()
    assert outcome.succeeded
    assert rig.server.state is STOPPED


def test_a_child_that_ignores_sigterm_is_killed_when_its_grace_runs_out() -> None:
    rig = Rig(unload_timeout=10)
    child = rig.load()

    outcome = Outcome(rig.server.stop())
    rig.clock.advance(9.9)
    assert child.signals == ["TERM"]
    rig.clock.advance(0.1)

    assert child.signals == ["TERM", "KILL"]
    assert outcome.pending
    child.is_killed()
    assert outcome.succeeded


def test_a_second_stop_joins_the_first_and_can_only_shorten_it() -> None:
    rig = Rig()
    child = rig.load()
    first = Outcome(rig.server.stop(30.0))

    second = Outcome(rig.server.stop(60.0))
    third = Outcome(rig.server.stop(1.0))
    rig.clock.advance(1.0)

    assert child.signals == ["TERM", "KILL"]
    child.is_killed()
    assert first.succeeded
    assert second.succeeded
    assert third.succeeded


def test_stopping_what_is_stopped_succeeds_and_changes_nothing() -> None:
    rig = Rig()

    assert Outcome(rig.server.stop()).succeeded
    assert rig.changes == []


def test_a_start_that_is_asked_for_during_a_stop_follows_it() -> None:
    rig = Rig()
    old = rig.load()
    stop, start = Outcome(rig.server.stop()), Outcome(rig.server.ensure_ready())
    assert rig.children.alive == [old]

    old.exits()
    assert stop.succeeded
    assert start.pending
    rig.becomes_healthy()

    assert start.succeeded
    assert rig.changes[-4:] == [
        (READY, STOPPING),
        (STOPPING, STOPPED),
        (STOPPED, STARTING),
        (STARTING, READY),
    ]


def test_nobody_left_to_wait_means_no_start_after_a_stop() -> None:
    rig = Rig()
    rig.load()
    Outcome(rig.server.stop())
    start = Outcome(rig.server.ensure_ready())

    start.deferred.cancel()
    rig.child.exits()

    assert rig.server.state is STOPPED
    assert len(rig.children.started) == 1


def test_a_stop_takes_back_the_start_that_was_to_follow_an_earlier_stop() -> None:
    rig = Rig()
    rig.load()
    Outcome(rig.server.stop())
    start = Outcome(rig.server.ensure_ready())

    Outcome(rig.server.stop())
    rig.child.exits()

    assert failure_of(start).why == "aborted"
    assert rig.server.state is STOPPED


def test_a_stop_while_starting_aborts_the_load_with_a_short_grace_and_no_stopping_state() -> None:
    rig = Rig(unload_timeout=30)
    load = Outcome(rig.server.ensure_ready())

    stop = Outcome(rig.server.stop())

    assert failure_of(load).why == "aborted"
    assert rig.child.signals == ["TERM"]
    rig.clock.advance(5.0)
    assert rig.child.signals == ["TERM", "KILL"]
    rig.child.is_killed()
    assert stop.succeeded
    assert rig.changes == [(STOPPED, STARTING), (STARTING, STOPPED)]


def test_an_answer_that_comes_after_the_stop_makes_nothing_ready() -> None:
    rig = Rig()
    Outcome(rig.server.ensure_ready())
    Outcome(rig.server.stop())

    rig.becomes_healthy()

    assert rig.server.state is STARTING
    assert rig.prober.questions == 0


def test_a_shutdown_ends_the_child_and_refuses_everything_after_it() -> None:
    rig = Rig()
    child = rig.load()

    outcome = Outcome(rig.server.shutdown(3.0))
    assert rig.changes[-1] == (READY, SHUTDOWN)
    assert child.signals == ["TERM"]
    rig.clock.advance(3.0)
    assert child.signals == ["TERM", "KILL"]
    child.is_killed()

    assert outcome.succeeded
    assert failure_of(Outcome(rig.server.ensure_ready())).why == "is shut down"
    assert isinstance(Outcome(rig.server.stop()).failure, ServerGone)
    assert Outcome(rig.server.shutdown(1.0)).succeeded


def stuck_child(rig: Rig) -> FakeChild:
    """A child that was to be stopped, was killed, and is still there a minute later."""
    child = rig.load()
    Outcome(rig.server.stop(1.0))
    rig.clock.advance(1.0)
    assert child.signals == ["TERM", "KILL"]
    rig.clock.advance(STUCK)
    return child


def test_who_waits_for_the_end_of_a_child_that_does_not_end_is_told_so() -> None:
    rig = Rig()
    child = rig.load()
    stop = Outcome(rig.server.stop(1.0))
    load = Outcome(rig.server.ensure_ready())
    rig.clock.advance(1.0)

    rig.clock.advance(STUCK - 0.1)
    assert stop.pending
    assert load.pending
    rig.clock.advance(0.1)

    words = f"m cannot be stopped: its process {child.pid} does not end, not even by SIGKILL"
    assert isinstance(stop.failure, ServerStuck)
    assert str(stop.failure) == words
    assert failure_of(load).why == words
    assert rig.server.state is STOPPING


def test_who_comes_while_a_child_does_not_end_is_told_so_at_once_and_served_once_it_has_ended() -> None:
    rig = Rig()
    child = stuck_child(rig)

    assert "does not end" in failure_of(Outcome(rig.server.ensure_ready())).why
    assert isinstance(Outcome(rig.server.stop()).failure, ServerStuck)

    child.is_killed()
    assert rig.server.state is STOPPED
    assert Outcome(rig.server.stop()).succeeded
    again = Outcome(rig.server.ensure_ready())
    rig.becomes_healthy()
    assert again.succeeded


def test_a_shutdown_waits_for_a_child_that_does_not_end_for_as_long_as_its_caller_likes() -> None:
    rig = Rig()
    child = stuck_child(rig)

    outcome = Outcome(rig.server.shutdown(1.0))
    rig.clock.advance(1000.0)

    assert outcome.pending
    child.is_killed()
    assert outcome.succeeded


def test_a_shutdown_while_starting_fails_the_waiters() -> None:
    rig = Rig()
    load = Outcome(rig.server.ensure_ready())

    outcome = Outcome(rig.server.shutdown(30.0))

    assert failure_of(load).why == "aborted: shutting down"
    rig.clock.advance(5.0)
    assert rig.child.signals == ["TERM", "KILL"]
    rig.child.is_killed()
    assert outcome.succeeded


def test_a_shutdown_during_a_stop_joins_it_and_takes_back_the_start_behind_it() -> None:
    rig = Rig()
    rig.load()
    stop, start = Outcome(rig.server.stop()), Outcome(rig.server.ensure_ready())

    shutdown = Outcome(rig.server.shutdown(30.0))
    rig.child.exits()

    assert stop.succeeded
    assert shutdown.succeeded
    assert failure_of(start).why == "aborted: shutting down"
    assert rig.server.state is SHUTDOWN


def test_idleness_counts_from_becoming_ready() -> None:
    rig = Rig(ttl=60, health_check_timeout=600)
    Outcome(rig.server.ensure_ready())
    rig.clock.advance(300.0)
    rig.becomes_healthy()
    rig.clock.advance(0.1)
    rig.becomes_healthy()

    rig.clock.advance(59.8)
    assert rig.server.state is READY
    rig.clock.advance(0.2)

    assert rig.server.state is STOPPING


def test_idleness_counts_from_the_end_of_the_last_use() -> None:
    rig = Rig(ttl=3)
    rig.load()
    rig.server.begin_use()
    rig.clock.advance(10.0)
    rig.server.end_use()

    rig.clock.advance(2.0)
    assert rig.server.state is READY
    rig.clock.advance(1.0)

    assert rig.server.state is STOPPING


def test_idleness_does_not_cut_short_a_stop_under_way() -> None:
    rig = Rig(ttl=1, unload_timeout=2)
    child = rig.load()
    Outcome(rig.server.stop(30.0))

    rig.clock.pump([1.0] * 29)

    assert child.signals == ["TERM"]


def test_a_ticket_that_waits_for_the_model_keeps_it_loaded() -> None:
    rig = Rig(ttl=3)
    rig.load()
    rig.may_expire = False

    rig.clock.pump([1.0] * 10)
    assert rig.server.state is READY
    rig.may_expire = True
    rig.clock.advance(1.0)

    assert rig.server.state is STOPPING


def test_a_need_that_meets_an_expiry_is_served_by_a_fresh_child() -> None:
    rig = Rig(ttl=1)
    old = rig.load()
    rig.clock.advance(1.0)

    start = Outcome(rig.server.ensure_ready())
    old.exits()
    rig.becomes_healthy()

    assert start.succeeded
    assert rig.child is not old


def test_a_listener_may_call_back_from_every_change() -> None:
    rig = Rig()
    restarted: list[Outcome] = []

    def restart(old: State, new: State) -> None:
        if (old, new) == (STOPPING, STOPPED) and not restarted:
            restarted.append(Outcome(rig.server.ensure_ready()))
        if (old, new) == (STOPPED, STARTING) and not restarted:
            Outcome(rig.server.stop())

    rig.on_change = restart
    aborted = Outcome(rig.server.ensure_ready())
    assert failure_of(aborted).why == "aborted"
    rig.child.exits()
    restarted.clear()
    rig.on_change = lambda old, new: None
    rig.load()
    rig.on_change = restart

    Outcome(rig.server.stop())
    rig.child.exits()
    rig.becomes_healthy()

    assert restarted[0].succeeded
    assert rig.server.state is READY
    assert len(rig.children.alive) == 1


def test_a_waiter_may_stop_the_server_in_its_callback() -> None:
    rig = Rig()
    stops: list[Outcome] = []
    rig.server.ensure_ready().addCallback(lambda _: stops.append(Outcome(rig.server.stop())))

    rig.becomes_healthy()

    assert rig.server.state is STOPPING
    assert stops[0].pending


def test_whoever_waited_for_the_end_sees_it_before_the_next_start() -> None:
    rig = Rig()
    rig.load()
    seen: list[State] = []
    rig.server.stop().addCallback(lambda _: seen.append(rig.server.state))
    Outcome(rig.server.ensure_ready())

    rig.child.exits()

    assert seen == [STOPPED]
    assert rig.server.state is STARTING


def test_a_name_that_a_stop_command_frees_late_gets_one_second_try() -> None:
    rig = Rig(cmd_stop="docker stop x", argv=("docker", "run"))
    rig.load()
    Outcome(rig.server.stop())
    rig.children.started[0].exits()
    rig.children.started[1].exits()
    load = Outcome(rig.server.ensure_ready())

    rig.child.exits(125)
    assert load.pending
    rig.clock.advance(3.0)
    rig.becomes_healthy()

    assert load.succeeded
    assert len(rig.children.started) == 4


def test_a_second_try_is_not_followed_by_a_third() -> None:
    rig = Rig(cmd_stop="docker stop x")
    rig.load()
    Outcome(rig.server.stop())
    rig.children.started[0].exits()
    rig.children.started[1].exits()
    load = Outcome(rig.server.ensure_ready())
    rig.child.exits(125)
    rig.clock.advance(3.0)
    rig.child.says("the name is in use")

    rig.child.exits(125)

    assert failure_of(load).why == "upstream command exited prematurely: exited with code 125"


def test_a_stop_before_the_second_try_ends_the_load_at_once() -> None:
    rig = Rig(cmd_stop="docker stop x")
    rig.load()
    Outcome(rig.server.stop())
    rig.children.started[0].exits()
    rig.children.started[1].exits()
    load = Outcome(rig.server.ensure_ready())
    rig.child.exits(125)

    assert Outcome(rig.server.stop()).succeeded

    assert failure_of(load).why == "aborted"
    assert rig.server.state is STOPPED
    assert rig.clock.getDelayedCalls() == []


def test_a_port_that_a_killed_daemons_child_still_has_is_waited_for() -> None:
    rig = Rig()
    rig.children.refusal, rig.children.refused_as = "port 5800 is in use by another process", PortTaken
    load = Outcome(rig.server.ensure_ready())
    rig.clock.pump([LOOK_AGAIN] * 20)
    assert load.pending
    assert rig.server.state is STARTING

    rig.children.refusal = ""
    rig.clock.advance(LOOK_AGAIN)
    rig.becomes_healthy()

    assert load.succeeded
    assert rig.changes == [(STOPPED, STARTING), (STARTING, READY)]


def test_a_port_that_stays_taken_is_somebody_elses() -> None:
    rig = Rig()
    rig.children.refusal, rig.children.refused_as = "port 5800 is in use by another process", PortTaken
    load = Outcome(rig.server.ensure_ready())

    rig.clock.pump([LOOK_AGAIN] * (int(LEGACY / LOOK_AGAIN) + 1))

    assert failure_of(load).why == rig.children.refusal
    assert rig.server.state is STOPPED
    again = Outcome(rig.server.ensure_ready())
    assert failure_of(again).why == rig.children.refusal, "and is not waited for any more"
    assert rig.clock.getDelayedCalls() == []


def test_a_stop_ends_the_waiting_for_a_port_at_once() -> None:
    rig = Rig()
    rig.children.refusal, rig.children.refused_as = "port 5800 is in use by another process", PortTaken
    load = Outcome(rig.server.ensure_ready())

    assert Outcome(rig.server.stop()).succeeded

    assert failure_of(load).why == "aborted"
    assert rig.server.state is STOPPED
    assert rig.clock.getDelayedCalls() == []


def test_the_report_says_what_runs_since_when() -> None:
    rig = Rig()
    rig.clock.advance(7.0)
    rig.load()
    rig.server.begin_use()
    rig.clock.advance(1.0)

    assert rig.server.report() == ServerReport("m", READY, FIRST_PID, 7.0, 1)


def test_the_address_of_a_ready_server_is_the_one_that_answered() -> None:
    rig = Rig(proxy="http://localhost:5800/pre/")
    Outcome(rig.server.ensure_ready())
    rig.prober.answers(None, "refused")
    rig.becomes_healthy()

    address = rig.server.address

    assert (address.host, address.port, address.base_path) == ("::1", 5800, "/pre")
    assert address.authority == "localhost:5800"
