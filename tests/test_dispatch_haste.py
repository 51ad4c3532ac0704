"""Jobs that are over in the very turn in which they were picked."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaswap.config.model import SchedulerName
from llamaswap.errors import NotReady
from support.dispatch_rig import Caller, DispatchRig, nothing_goes_wrong
from support.processes_fakes import a_model

CROWD = 3000  # more than Python's stack has frames
BOTH = pytest.mark.parametrize("use", list(SchedulerName))


def in_haste(caller: Caller) -> None:
    """Finish as soon as there is a lease."""
    if caller.lease is not None:
        caller.finish()


def settle(rig: DispatchRig) -> None:
    """Let every child do what it should, until nothing changes any more."""
    for _ in range(4):
        rig.goes(*rig.fleet)
        for model in rig.fleet:
            rig.becomes_ready(model)
        rig.clock.advance(1.0)


@BOTH
def test_case_102_a_crowd_of_jobs_that_end_when_they_are_picked_is_served_without_a_tower_of_calls(
    use: SchedulerName,
) -> None:
    rig = DispatchRig("a", use=use)
    rig.warm("a")
    blocker = rig.call("a")
    with nothing_goes_wrong():
        crowd = [rig.call("a", number % 7, then=in_haste) for number in range(CROWD)]
        blocker.finish()

        assert all(caller.outcomes == 1 and caller.done for caller in crowd)
        assert rig.dispatcher.view().jobs == ()
        if use is SchedulerName.SERIAL:
            served = [caller.priority for caller in rig.leased[1:]]
            assert served == sorted(served, reverse=True)
    rig.stop_fleet()


@BOTH
def test_case_102_a_job_that_drags_others_along_when_it_ends_leaves_the_rest_in_their_places(
    use: SchedulerName,
) -> None:
    """Its end makes half of the others leave, and newcomers arrive: in that very turn."""
    rig = DispatchRig(*(a_model(id=name, concurrency_limit=100) for name in "ab"), use=use)
    rig.warm("a")
    blocker = rig.call("a")
    rest: list[Caller] = []
    late: list[Caller] = []

    def upheaval(caller: Caller) -> None:
        for other in rest[::2]:
            other.leave()
        late.append(rig.call("b", 1000, then=in_haste))
        late.append(rig.call("a", -1000, then=in_haste))
        in_haste(caller)

    with nothing_goes_wrong():
        first = rig.call("a", 500, then=upheaval)
        rest += [rig.call("ab"[number % 3 == 0], number, then=in_haste) for number in range(60)]
        blocker.finish()
        for _ in range(5):
            settle(rig)

        assert first.done
        if use is SchedulerName.SERIAL:  # under fifo some were served beside the blocker
            assert all(caller.abandoned is not None for caller in rest[::2])
        assert all(caller.outcomes == 1 for caller in (*rest, *late))
        assert all(caller.done for caller in (*rest[1::2], *late))
    rig.stop_fleet()


priorities = st.one_of(st.integers(-150, 150), st.sampled_from([2**63 - 1, -(2**63), 2**62]))


crowds = st.lists(
    st.tuples(st.sampled_from("abc"), priorities, st.sampled_from(["haste", "leaves", "stays", "dies"])),
    max_size=12,
)


@BOTH
def test_case_102_each_request_ends_once_whatever_they_all_do_at_once(use: SchedulerName) -> None:
    @settings(max_examples=40, deadline=None)
    @given(crowds)
    def check(crowd: list[tuple[str, int, str]]) -> None:
        play(use, crowd)

    with nothing_goes_wrong():
        check()


def play(use: SchedulerName, crowd: list[tuple[str, int, str]]) -> None:
    """Let them all ask in one turn, and each end in its way."""
    rig = DispatchRig(*(a_model(id=name, concurrency_limit=100) for name in "abc"), use=use)

    def dies(caller: Caller) -> None:
        if caller.lease is not None:
            rig.child(caller.model).exits(1)
            caller.finish()

    manners = {"haste": in_haste, "dies": dies}
    callers = [(rig.call(model, priority, then=manners.get(how)), how) for model, priority, how in crowd]
    for caller, how in callers:
        if how == "leaves" and not caller.outcomes:
            caller.leave()
    for _ in range(2 * len(crowd) + 2):
        if all(caller.outcomes for caller, _ in callers):
            break
        settle(rig)
        for caller, _ in callers:
            if caller.serving:
                caller.finish()

    assert all(caller.outcomes == 1 for caller, _ in callers)
    for caller, how in callers:
        # Under fifo a server may die between the grant to one and the grant to the next.
        torn = use is SchedulerName.FIFO and isinstance(caller.refusal, NotReady)
        assert caller.done or torn or how in ("leaves", "dies")
    view = rig.dispatcher.view()
    assert view.jobs == ()
    assert sum(band.depth for band in view.bands.values()) == 0
    rig.stop_fleet()
