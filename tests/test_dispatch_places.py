"""What a dispatcher says of places in its queue, and how it parts with models; in crowds, too."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from llamaswap.config.model import SchedulerName, SerialSettings
from llamaswap.errors import UnknownModel
from llamaswap.scheduling.registry import make_scheduler
from support.dispatch_rig import DispatchRig
from support.processes_fakes import a_model

Place = Callable[[], "int | None"]


def test_who_has_to_wait_is_told_so_and_can_ask_for_the_place() -> None:
    rig = DispatchRig("a", "b")
    rig.warm("a")
    running = rig.call("a")
    told: list[Place] = []
    rig.call("a")
    waiting = rig.call("a", queued=told.append)

    (place,) = told
    assert place() == 2
    urgent = rig.call("b", 100)
    assert place() == 3
    urgent.leave()
    running.finish()
    assert place() == 1
    waiting.leave()
    assert place() is None


@pytest.mark.parametrize("use", list(SchedulerName))
def test_who_goes_at_once_is_told_of_no_place(use: SchedulerName) -> None:
    rig = DispatchRig("a", use=use)
    told: list[Place] = []

    rig.call("a", queued=told.append)

    assert told == []


@pytest.mark.parametrize("use", list(SchedulerName))
def test_who_is_refused_is_told_of_no_place(use: SchedulerName) -> None:
    rig = DispatchRig(a_model(id="a", concurrency_limit=1), use=use)
    rig.call("a")
    told: list[Place] = []

    refused = rig.call("a", queued=told.append)

    assert refused.refusal is not None
    assert told == []


@pytest.mark.parametrize("use", list(SchedulerName))
def test_ten_thousand_who_wait_can_all_ask_for_their_place(use: SchedulerName) -> None:
    models = [a_model(id=name, concurrency_limit=20_000) for name in ("a", "b")]
    rig = DispatchRig(*models, use=use)
    rig.warm("a")
    busy = rig.call("a")
    places: list[Place] = []
    crowd = [rig.call("b", number % 7, queued=places.append) for number in range(10_000)]
    began = time.process_time()

    asked = {place() for place in places}
    for _ in range(100):
        rig.dispatcher.view()

    # 0.3 s and 1 s on a slow machine; one look at everybody for each place would take a minute.
    assert time.process_time() - began < 10.0
    assert asked == set(range(1, 10_001))
    for caller in crowd:
        caller.leave()
    assert {place() for place in places} == {None}
    busy.finish()


def test_with_five_hundred_models_a_dispatch_takes_no_time_to_speak_of() -> None:
    rig = DispatchRig(*(f"m{number:03}" for number in range(500)))
    rig.warm("m000")
    began = time.process_time()

    for _ in range(200):
        rig.call("m000").finish()

    # 0.5 ms each on a slow machine.
    assert (time.process_time() - began) / 200 < 0.01


# Models that come and go.


def test_a_model_that_is_dropped_can_be_asked_for_no_more_though_it_serves() -> None:
    rig = DispatchRig("a", "b")
    rig.warm("a")
    running = rig.call("a")

    rig.dispatcher.suspend(["b"])
    late = rig.call("a")

    assert isinstance(late.refusal, UnknownModel)
    rig.dispatcher.reconfigure(make_scheduler(DispatchRig("b").config))
    assert running.serving
    running.finish()
    assert running.done
    assert rig.dispatcher.when_idle().called


def test_a_load_of_a_model_that_is_gone_says_nothing_and_its_caller_goes_with_the_next_scheduler() -> None:
    rig = DispatchRig("a", "b")
    loading = rig.call("a")

    rig.dispatcher.suspend(["b"])
    assert loading.waiting
    rig.dispatcher.reconfigure(make_scheduler(DispatchRig("b").config))

    assert isinstance(loading.refusal, UnknownModel)
    assert rig.tally.ended == []


def test_a_broken_connection_of_a_model_that_is_gone_troubles_nobody() -> None:
    rig = DispatchRig("a")

    rig.dispatcher.doubt("gone")

    assert rig.call("a").waiting


def test_whoever_could_go_in_the_middle_of_a_change_goes_by_the_rules_that_come() -> None:
    rig = DispatchRig("a", "b", use=SchedulerName.FIFO)
    rig.warm("a")
    running = rig.call("a")
    waiting = [rig.call("b"), rig.call("b"), rig.call("b", 7)]

    rig.dispatcher.suspend(["a", "b"])
    running.finish()
    assert all(caller.waiting for caller in waiting)
    rig.reload(SerialSettings())
    rig.goes("a")
    rig.becomes_ready("b")

    assert [caller.serving for caller in waiting] == [False, False, True]
    assert len(rig.dispatcher.view().jobs) == 1
