"""What is done of what the scheduler decides; the rest is told of the whole dispatcher."""

from __future__ import annotations

from llamaswap.config.model import GroupConfig, SchedulerName
from llamaswap.errors import NotReady
from support.dispatch_rig import DispatchRig


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


def test_a_lease_that_could_not_be_given_leaves_no_job() -> None:
    rig = DispatchRig("a")
    caller = rig.call("a")
    rig.tally.when_loaded = rig.child("a").is_killed
    rig.becomes_ready("a")

    assert isinstance(caller.refusal, NotReady)
    assert rig.dispatcher.queueing.queue().jobs == []
    assert rig.dispatcher.when_idle().called
