"""How models are made ready and stopped, and who is told."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from llamaswap.config.model import SchedulerName, SerialSettings
from llamaswap.leases import Lease, SwapReason
from llamaswap.loads import Loads, Reports
from llamaswap.processes.fleet import Fleet
from llamaswap.processes.lifecycle import State
from support.dispatch_rig import DispatchRig, nothing_goes_wrong


class Yard:
    """The loads of a rig's fleet, without its dispatcher."""

    def __init__(self, *models: str) -> None:
        self.rig = DispatchRig(*models)
        self.told: list[str] = []
        self.fleet: Fleet = self.rig.fleet
        self.clock: Clock = self.rig.clock
        self.loads = Loads(
            self.fleet,
            self.clock,
            Reports(
                began=self._began,
                ended=self._ended,
                failed=self._failed,
                revived=self._revived,
                room=lambda: self.told.append("look again"),
                fits=lambda _model: True,
                held=lambda _model: False,
            ),
        )

    def _began(self, model: str, reason: SwapReason) -> None:
        self.told.append(f"{model} began for a {reason}")

    def _ended(self, model: str, seconds: float) -> None:
        self.told.append(f"{model} is ready after {seconds:g}")

    def _failed(self, model: str, why: str, output: Sequence[str]) -> None:
        self.told.append(f"{model} failed")

    def _revived(self, lease: Lease, seconds: float | None) -> None:
        self.told.append(f"{lease.server.model.id} lives again after {seconds}")


def test_a_load_tells_its_begin_and_its_end() -> None:
    yard = Yard("a")

    yard.loads.begin("a", frozenset(), "preload")
    assert list(yard.loads.under_way) == ["a"]
    yard.clock.advance(2.0)
    yard.rig.becomes_ready("a")

    assert yard.told == ["a began for a preload", "a is ready after 2"]
    assert yard.loads.under_way == {}
    assert yard.loads.facts().ready == {"a"}


def test_what_is_in_the_way_is_gone_before_the_child_starts_and_counts_as_load() -> None:
    yard = Yard("a", "b")
    yard.loads.begin("a", frozenset(), "request")
    yard.rig.becomes_ready("a")

    yard.loads.begin("b", frozenset({"a"}), "request")
    assert yard.rig.starts("b") == 0
    yard.clock.advance(1.0)
    yard.rig.goes("a")
    yard.clock.advance(1.0)
    yard.rig.becomes_ready("b")

    assert yard.told[-1] == "b is ready after 2"
    assert yard.loads.facts().running == {"b"}


def test_a_child_that_dies_is_a_failure_and_one_that_was_stopped_is_not() -> None:
    yard = Yard("a", "b")
    yard.loads.begin("a", frozenset(), "request")
    yard.rig.child("a").exits(1)
    assert yard.told[-1] == "a failed"

    yard.loads.begin("b", frozenset(), "request")
    with nothing_goes_wrong():
        yard.loads.stop("b", None)
        yard.rig.goes("b")

    assert yard.told[-1] == "b began for a request"
    assert yard.loads.under_way == {}


def test_a_load_that_rests_goes_on_where_it_was_and_counts_from_its_beginning() -> None:
    yard = Yard("a", "b")
    yard.loads.begin("b", frozenset(), "request")
    yard.rig.becomes_ready("b")
    yard.loads.begin("a", frozenset(), "request")
    yard.clock.advance(1.0)

    yard.loads.suspend()
    assert yard.loads.under_way == {}
    yard.clock.advance(1.0)
    yard.loads.resume("a", frozenset())
    yard.clock.advance(1.0)
    yard.rig.becomes_ready("a")

    assert yard.rig.starts("a") == 1
    assert yard.told[-2:] == ["a began for a request", "a is ready after 3"]
    assert yard.loads.facts().ready == {"a", "b"}


def test_a_load_that_rests_starts_nothing_and_goes_on_once_more_is_stopped_for_it() -> None:
    yard = Yard("a", "b", "c")
    for model in ("b", "c"):
        yard.loads.begin(model, frozenset(), "request")
        yard.rig.becomes_ready(model)
    yard.loads.begin("a", frozenset({"b"}), "request")

    yard.loads.suspend()
    yard.rig.goes("b")
    assert yard.rig.starts("a") == 0
    yard.loads.resume("a", frozenset({"c"}))
    assert yard.rig.starts("a") == 0
    yard.rig.goes("c")

    assert yard.rig.starts("a") == 1
    assert yard.loads.facts().running == {"a"}


def test_a_model_in_doubt_is_not_ready_until_the_doubt_is_over() -> None:
    yard = Yard("a")
    yard.loads.begin("a", frozenset(), "request")
    yard.rig.becomes_ready("a")

    yard.loads.doubt("a")
    assert yard.loads.facts().ready == frozenset()
    assert yard.loads.facts().running == {"a"}
    yard.clock.advance(1.0)

    assert yard.loads.facts().ready == {"a"}
    assert yard.told[-1] == "look again"


def test_a_server_that_died_under_its_lease_is_started_again_for_that_reason() -> None:
    rig = DispatchRig("a")
    rig.warm("a")
    caller = rig.call("a")
    assert caller.lease is not None
    rig.child("a").is_killed()

    revived = Deferred.fromCoroutine(rig.dispatcher.revive(caller.lease))
    rig.clock.advance(1.0)
    rig.becomes_ready("a")

    assert revived.result is True
    assert rig.tally.swaps == [("a", "request"), ("a", "revive")]
    assert rig.state("a") is State.READY
    caller.finish()
    assert rig.estimates.run("a") is not None  # of the first job, which warmed it; not of this one


def test_a_server_that_died_is_not_started_again_beside_one_that_took_its_place() -> None:
    rig = DispatchRig("a", "b", use=SchedulerName.FIFO)
    rig.warm("a")
    caller = rig.call("a")
    assert caller.lease is not None
    rig.child("a").is_killed()
    rig.call("b")

    revived = Deferred.fromCoroutine(rig.dispatcher.revive(caller.lease))
    rig.clock.advance(1.0)

    assert revived.result is False
    assert (rig.state("a"), rig.state("b")) == (State.STOPPED, State.STARTING)


def test_two_jobs_that_find_their_server_dead_begin_one_load() -> None:
    rig = DispatchRig("a", serial=SerialSettings(width={"a": 2}))
    rig.warm("a")
    leases = [caller.lease for caller in (rig.call("a"), rig.call("a")) if caller.lease is not None]
    rig.child("a").is_killed()

    revived = [Deferred.fromCoroutine(rig.dispatcher.revive(lease)) for lease in leases]
    rig.clock.advance(1.0)
    rig.becomes_ready("a")

    assert [one.result for one in revived] == [True, True]
    assert rig.tally.swaps == [("a", "request"), ("a", "revive")]
    assert rig.tally.ended == [("a", 0.0), ("a", 1.0)]


@pytest.mark.parametrize("going", [True, False])  # whether the one that is stopped has not gone yet
@pytest.mark.parametrize("again", [True, False])  # whether there was another one by then
def test_a_server_that_died_and_that_somebody_has_stopped_since_stays_stopped(
    again: bool, going: bool
) -> None:
    rig = DispatchRig("a", use=SchedulerName.FIFO)
    rig.warm("a")
    caller = rig.call("a")
    assert caller.lease is not None
    rig.child("a").is_killed()
    if again:
        rig.call("a")
    Deferred.fromCoroutine(rig.dispatcher.unload(frozenset("a")))
    if not going:
        rig.goes("a")
    starts = rig.starts("a")

    revived = Deferred.fromCoroutine(rig.dispatcher.revive(caller.lease))
    rig.clock.advance(1.0)
    rig.goes("a")

    assert revived.result is False
    assert rig.starts("a") == starts
    assert rig.tally.swaps == [("a", "request")] * (2 if again else 1)


def test_a_child_that_is_stopped_while_it_starts_is_on_its_way_out_too() -> None:
    yard = Yard("a")
    yard.loads.begin("a", frozenset(), "preload")
    assert not yard.loads.facts().stopping

    yard.loads.dismiss("a")

    assert yard.rig.state("a") is State.STARTING
    assert yard.loads.facts().running == yard.loads.facts().stopping == {"a"}
    yard.rig.goes("a")
    assert not yard.loads.facts().running
    assert not yard.loads.facts().stopping
