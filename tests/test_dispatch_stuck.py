"""A server that does not end, whatever is done to it, as those who want its place see it."""

from __future__ import annotations

import pytest
from twisted.internet.defer import Deferred

from llamaswap.config.model import GroupConfig, SchedulerName
from llamaswap.errors import LoadRefused, ModelFailing, UnloadFailed
from llamaswap.processes.lifecycle import State
from llamaswap.processes.stopping import STUCK
from llamaswap.scheduling.backoff import FIRST_PAUSE, STRIKES
from support.dispatch_rig import DispatchRig, nothing_goes_wrong
from support.processes_fakes import Outcome, a_model

every_scheduler = pytest.mark.parametrize("use", list(SchedulerName))


def kill_in_vain(rig: DispatchRig, model: str) -> None:
    """A model that is being stopped is killed, and is still there a minute later."""
    rig.clock.advance(float(rig.config.models[model].health_check_timeout))
    assert rig.child(model).signals == ["TERM", "KILL"]
    rig.clock.advance(STUCK)


@every_scheduler
def test_who_waits_for_its_place_is_told_whose_process_is_in_the_way(use: SchedulerName) -> None:
    rig = DispatchRig("a", "b", "c", use=use)
    rig.warm("a")
    caller, another = rig.call("b"), rig.call("c")

    with nothing_goes_wrong():
        kill_in_vain(rig, "a")

        words = f"a cannot be stopped: its process {rig.child('a').pid} does not end, not even by SIGKILL"
        for told in (caller, another):
            assert isinstance(told.refusal, LoadRefused)
            assert words in told.refusal.message
        assert isinstance(rig.call("a").refusal, LoadRefused)  # nor can it be started anew
        assert rig.starts("a") == 1
        assert rig.starts("b") == rig.starts("c") == 0
        rig.stop_fleet()


@every_scheduler
def test_once_it_has_gone_after_all_everything_is_as_ever(use: SchedulerName) -> None:
    rig = DispatchRig("a", "b", use=use)
    rig.warm("a")
    rig.call("b")
    kill_in_vain(rig, "a")

    rig.child("a").is_killed()

    caller = rig.call("b")
    rig.becomes_ready("b")
    assert caller.serving
    assert rig.state("a") is State.STOPPED
    caller.finish()
    rig.stop_fleet()


def test_after_three_in_vain_nobody_else_tries_for_a_while() -> None:
    rig = DispatchRig("a", "b")
    rig.warm("a")
    callers = [rig.call("b")]
    kill_in_vain(rig, "a")
    callers += [rig.call("b") for _ in range(STRIKES)]

    refusal = callers[-1].refusal

    assert isinstance(refusal, ModelFailing)
    assert "a cannot be stopped" in refusal.message
    assert refusal.retry_after == FIRST_PAUSE
    rig.stop_fleet()


def test_who_needs_another_place_is_served_meanwhile() -> None:
    apart = [GroupConfig(id="big", members=("a", "b"), exclusive=False)]
    apart += [GroupConfig(id="small", members=("embed",), exclusive=False)]
    rig = DispatchRig("a", "b", "embed", groups=apart)
    rig.warm("a")
    rig.call("b")
    small = rig.call("embed")

    kill_in_vain(rig, "a")

    rig.becomes_ready("embed")
    assert small.serving
    small.finish()
    rig.stop_fleet()


@every_scheduler
def test_an_unload_says_so_once_the_others_are_stopped(use: SchedulerName) -> None:
    together = [GroupConfig(id="all", members=("a", "b"), swap=False)]
    rig = DispatchRig("a", a_model(id="b", unload_timeout=600), groups=together, use=use)
    rig.warm("a")
    rig.warm("b")
    with nothing_goes_wrong():
        unloaded = Outcome(Deferred.fromCoroutine(rig.dispatcher.unload(frozenset({"a", "b"}))))

        kill_in_vain(rig, "a")
        assert unloaded.pending
        rig.goes("b")

        assert isinstance(unloaded.failure, UnloadFailed)
        assert "a cannot be stopped" in unloaded.failure.message
        rig.stop_fleet()


@every_scheduler
def test_a_load_that_nobody_wants_any_more_is_not_missed_when_it_cannot_be(use: SchedulerName) -> None:
    rig = DispatchRig("a", "b", "c", use=use)
    rig.warm("a")
    with nothing_goes_wrong():
        rig.call("b").leave()
        caller = rig.call("c")

        kill_in_vain(rig, "a")

        assert isinstance(caller.refusal, LoadRefused)
        rig.stop_fleet()
