"""A protected model, as a dispatcher and its servers see it."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred

from llamaswap.config.model import SchedulerName
from llamaswap.errors import ModelProtected
from llamaswap.preload import preload
from llamaswap.processes.lifecycle import State
from support.dispatch_rig import DispatchRig
from support.processes_fakes import a_model

every_scheduler = pytest.mark.parametrize("use", list(SchedulerName))


def a_rig(use: SchedulerName) -> DispatchRig:
    """The protected model a holds the box; b would evict it."""
    rig = DispatchRig(a_model(id="a", protected=True), "b", use=use)
    rig.warm("a")
    return rig


@every_scheduler
def test_who_would_evict_it_is_refused_and_told_of_no_place(use: SchedulerName) -> None:
    rig = a_rig(use)
    told: list[Any] = []

    refused = rig.call("b", 100, queued=told.append)

    assert isinstance(refused.refusal, ModelProtected)
    assert not told and rig.state("a") is State.READY and rig.starts("b") == 0


@every_scheduler
def test_who_overrides_evicts_it_and_while_it_stops_it_holds_nobody_off(use: SchedulerName) -> None:
    rig = a_rig(use)

    ruthless = rig.call("b", overrides=True)
    assert rig.state("a") is State.STOPPING
    joining = rig.call("b")
    rig.goes("a")
    rig.becomes_ready("b")
    assert ruthless.serving
    ruthless.finish()
    assert joining.serving or joining.done

    rig.stop_fleet()


@every_scheduler
def test_an_unload_that_takes_a_while_holds_nobody_off(use: SchedulerName) -> None:
    rig = a_rig(use)
    unloaded = Deferred.fromCoroutine(rig.dispatcher.unload(frozenset({"a"})))

    other = rig.call("b")
    rig.goes("a")
    rig.becomes_ready("b")

    assert other.serving and unloaded.called


@every_scheduler
def test_a_preload_is_refused_like_any_request(use: SchedulerName) -> None:
    rig = a_rig(use)

    preloaded = Deferred.fromCoroutine(preload("b", rig.dispatcher, rig.clock))

    assert preloaded.called
    assert rig.alive() == ["a"]
