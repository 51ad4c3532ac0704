"""What is done of what the scheduler decides; the rest is told of the whole dispatcher."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from twisted.internet.defer import Deferred

from llamaswap.config.model import GroupConfig, SchedulerName, SerialSettings
from llamaswap.doubts import SETTLE
from llamaswap.errors import ModelFailing, ModelProtected, NotReady, Refusal, ShuttingDown
from llamaswap.leases import Lease
from llamaswap.scheduling.vocabulary import Verdict
from support.dispatch_rig import Caller, DispatchRig, troubles
from support.processes_fakes import a_model


def test_a_load_says_for_what_it_was_begun() -> None:
    rig = DispatchRig("a", "b")
    rig.call("a", reason="preload")
    rig.becomes_ready("a")
    rig.leased[0].finish()

    rig.call("b")

    assert rig.tally.swaps == [("a", "preload"), ("b", "request")]
    assert rig.tally.began == ["a", "b"]


def test_a_box_that_runs_jobs_side_by_side_runs_until_the_last_has_ended() -> None:
    apart = [
        GroupConfig(id="x", members=("a",), exclusive=False),
        GroupConfig(id="y", members=("b",), exclusive=False),
    ]
    rig = DispatchRig("a", "b", use=SchedulerName.FIFO, groups=apart)
    first, second = rig.call("a"), rig.call("b")
    rig.becomes_ready("a")
    first.finish()
    rig.becomes_ready("b")
    second.finish()

    assert rig.tally.box_states == ["load", "run", "load", "run", "idle"]


def test_whoever_wants_to_know_is_told_after_each_change_of_the_queue_and_of_the_jobs() -> None:
    rig = DispatchRig("a")
    rig.warm("a")
    seen: list[tuple[int, int]] = []

    def changed() -> None:
        view = rig.dispatcher.view()
        seen.append((len(view.jobs), sum(band.depth for band in view.bands.values())))

    rig.dispatcher.tell(changed)
    first, second = rig.call("a", reason="preload"), rig.call("a")
    first.finish()
    second.leave()

    assert list(dict.fromkeys(seen)) == [(1, 0), (1, 1), (0, 0)]
    assert seen[-1] == (0, 0)


def test_a_lease_that_could_not_be_given_leaves_no_job() -> None:
    rig = DispatchRig("a")
    caller = rig.call("a")
    rig.tally.when_loaded = rig.child("a").is_killed
    rig.becomes_ready("a")

    assert isinstance(caller.refusal, NotReady)
    assert rig.dispatcher.queueing.queue().jobs == []
    assert rig.dispatcher.when_idle().called


def closed(rig: DispatchRig) -> None:
    """The daemon ends."""
    rig.dispatcher.close()


def failing(rig: DispatchRig) -> None:
    """The model that somebody waits for cannot be loaded."""
    for _ in range(3):
        rig.call("c", 100)
    rig.leased[0].finish()
    for _ in range(3):
        rig.goes("a")
        rig.child("c").exits(1)


def protected(rig: DispatchRig) -> None:
    """What is loaded keeps its place."""
    rig.call("b", 100)
    rig.leased[0].finish()
    rig.goes("a")
    rig.becomes_ready("b")


@pytest.mark.parametrize(
    ("happens", "kind"), [(closed, ShuttingDown), (failing, ModelFailing), (protected, ModelProtected)]
)
def test_whoever_is_refused_while_he_waits_has_a_row_that_says_for_how_long(
    happens: Callable[[DispatchRig], None], kind: type[Refusal]
) -> None:
    rig = DispatchRig("a", a_model(id="b", protected=True), "c")
    rig.warm("a")
    rig.call("a")
    waiting: Caller = rig.call("c", -98)
    rig.clock.advance(600.0)

    happens(rig)

    assert isinstance(waiting.refusal, kind)
    assert waiting.refusal.noted == {
        "serial_priority": "-98",
        "serial_band": "batch",
        "serial_queue_wait_ms": "600000",
    }


def test_somebody_who_fails_when_told_of_his_turn_costs_nobody_the_box() -> None:
    rig = DispatchRig("a")
    rig.warm("a")

    def told(_verdict: Verdict, _now: float) -> None:
        raise ZeroDivisionError

    async def ask() -> None:
        async with rig.dispatcher.lease("a", 0, told=told) as lease:
            leases.append(lease)

    leases: list[Lease] = []
    with troubles() as seen:
        Deferred.fromCoroutine(ask())

    assert len(leases) == len(seen) == 1
    assert rig.call("a").serving


def test_a_place_beside_a_wide_model_is_filled_once_it_is_known_that_its_server_lives_on() -> None:
    rig = DispatchRig("a", serial=SerialSettings(width={"a": 2}))
    rig.warm("a")
    broken, running, waiting = rig.call("a"), rig.call("a"), rig.call("a")
    rig.dispatcher.doubt("a")
    broken.finish()
    assert waiting.waiting

    rig.clock.advance(SETTLE)

    assert waiting.serving
    assert running.serving


def test_a_place_beside_a_wide_model_is_filled_once_its_dead_server_is_back() -> None:
    rig = DispatchRig("a", serial=SerialSettings(width={"a": 2}))
    rig.warm("a")
    running = rig.call("a")
    assert running.lease is not None
    rig.child("a").is_killed()
    Deferred.fromCoroutine(rig.dispatcher.revive(running.lease))
    rig.clock.advance(SETTLE)
    waiting = rig.call("a")
    assert waiting.waiting

    rig.becomes_ready("a")

    assert waiting.serving
