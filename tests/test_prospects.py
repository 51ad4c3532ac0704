"""What is to be expected of a queue, read off its scheduler's plan."""

from __future__ import annotations

from llamaswap.prospects import FAR
from llamaswap.scheduling.forecast import Eta, Job
from llamaswap.scheduling.vocabulary import Band
from support.dispatch_rig import DispatchRig


def test_the_next_of_a_band_is_the_first_of_it_in_the_plan() -> None:
    rig = DispatchRig("a")
    rig.warm("a")
    for _ in range(20):
        rig.estimates.ran("a", 10.0)
    rig.call("a")
    rig.call("a", 100)
    rig.call("a")
    prospects = rig.prospects()

    interactive, normal = prospects.next_of(Band.INTERACTIVE), prospects.next_of(Band.NORMAL)

    assert interactive is not None
    assert normal is not None
    assert 5.0 < interactive.p50 < 15.0
    assert 15.0 < normal.p50 < 25.0
    assert prospects.next_of(Band.BATCH) is None


def test_what_is_too_far_off_is_not_looked_for() -> None:
    rig = DispatchRig("a")
    rig.warm("a")
    rig.call("a")
    for _ in range(FAR):
        rig.call("a")
    rig.call("a", -100)
    prospects = rig.prospects()
    first, *_, last = prospects.page(0, FAR + 1)

    assert prospects.next_of(Band.BATCH) is None
    assert prospects.planned(first.ticket) == first
    assert prospects.planned(last.ticket) is None


def test_a_page_is_a_part_of_the_order() -> None:
    rig = DispatchRig("a")
    rig.warm("a")
    rig.call("a")
    for priority in range(10):
        rig.call("a", priority)

    page = rig.prospects().page(2, 3)

    assert [planned.ticket.priority for planned in page] == [7, 6, 5]
    assert rig.prospects().page(10, 3) == []


def test_a_job_that_loads_has_the_rest_of_its_load_and_its_run_before_it() -> None:
    rig = DispatchRig("a")
    rig.call("a")
    for _ in range(20):
        rig.estimates.ran("a", 10.0)
        rig.estimates.loaded("a", 30.0)
    rig.clock.advance(10.0)
    prospects = rig.prospects()
    (job,) = prospects.jobs

    remaining = prospects.remaining(job)

    assert job == Job(ticket=job.ticket, loading=True, since=0.0)
    assert isinstance(remaining, Eta)
    assert 25.0 < remaining.p50 < 35.0


def test_what_was_never_measured_has_no_end_in_sight() -> None:
    rig = DispatchRig("a")
    rig.call("a")
    prospects = rig.prospects()

    assert prospects.remaining(prospects.jobs[0]) is None
