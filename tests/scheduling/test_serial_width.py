"""A model whose server takes several requests at once holds the box with as many, and overtakes nobody."""

from __future__ import annotations

import pytest

from llamaswap.config.model import GroupConfig
from llamaswap.errors import LoadRefused, ModelUnloaded
from llamaswap.scheduling.vocabulary import Band, Term
from support.scheduling_box import Box, Life
from support.scheduling_setup import fifo_box, serial_box


def wide_box(names: str = "AB", *, ready: bool = True, **options: object) -> Box:
    """Return a box whose model A takes three requests at once, and is ready unless told otherwise."""
    box = serial_box(names, width={"A": 3}, **options)  # type: ignore[arg-type]  # serial_box's own
    if ready:
        box.fleet.ready.add("A")
    return box


def test_as_many_as_the_width_run_at_once_and_no_more() -> None:
    box = wide_box()

    for _ in range(4):
        box.arrive("A", job=10.0)
    assert box.served == [1, 2, 3]

    box.settle()
    assert box.served_at[4] == 10.0


def test_when_the_box_becomes_free_as_many_go_at_once() -> None:
    box = wide_box()
    box.pause(*Band)
    for _ in range(4):
        box.arrive("A", job=10.0)
    assert box.dispatched == []

    box.resume(*Band)

    assert (box.dispatched, box.served) == ([1, 2, 3], [1, 2, 3])


def test_each_that_ends_lets_the_next_one_in() -> None:
    box = wide_box()
    for seconds in (1.0, 5.0, 9.0, 1.0, 1.0):
        box.arrive("A", job=seconds)

    box.settle()

    assert [box.served_at[number] for number in range(1, 6)] == [0.0, 0.0, 0.0, 1.0, 2.0]


def test_nobody_is_let_in_while_the_model_loads() -> None:
    box = wide_box(ready=False)
    for _ in range(3):
        box.arrive("A")

    box.advance(1.9)
    assert (box.dispatched, box.served) == ([1], [])

    box.advance(0.1)
    assert (box.dispatched, box.served) == ([1, 2, 3], [1, 2, 3])


def test_whoever_is_better_is_not_overtaken() -> None:
    box = wide_box()
    box.arrive("A", job=10.0)
    box.arrive("B", 100)
    for _ in range(2):
        box.arrive("A")

    box.advance(9.9)
    assert box.dispatched == [1]

    box.settle()
    assert box.dispatched == [1, 2, 3, 4]


def test_who_is_better_than_the_other_model_is_let_in_past_it() -> None:
    box = wide_box()
    box.arrive("A", job=10.0)
    box.arrive("B", 50)

    box.arrive("A", 60)
    box.arrive("A", 0)

    assert box.dispatched == [1, 3]


def test_the_affinity_that_lets_one_in_is_told_of() -> None:
    box = wide_box()
    box.arrive("A", job=10.0)
    box.arrive("B", 5)

    late = box.arrive("A", 0)

    assert box.verdicts[late.number].changed_by == {Term.SWAP_AFFINITY}


@pytest.mark.parametrize("how", ["leaves", "is demoted", "is paused"])
def test_when_the_better_one_is_out_of_the_way_the_next_are_let_in_at_once(how: str) -> None:
    box = wide_box()
    box.arrive("A", job=10.0)
    better = box.arrive("B", 100)
    for _ in range(2):
        box.arrive("A")

    if how == "leaves":
        box.cancel(better)
    elif how == "is demoted":
        box.reprioritise(better, -100)
    else:
        box.pause(Band.INTERACTIVE)

    assert box.dispatched == [1, 3, 4]


def test_who_becomes_the_best_is_let_in_at_once() -> None:
    box = wide_box()
    box.arrive("A", job=10.0)
    box.arrive("B", 100)
    raised = box.arrive("A", 0)

    box.reprioritise(raised, 200)

    assert box.dispatched == [1, 3]


def test_a_swap_waits_for_all_of_them() -> None:
    box = wide_box()
    for seconds in (3.0, 8.0):
        box.arrive("A", job=seconds)
    box.arrive("B", 100)

    box.advance(7.9)
    assert box.loads == []

    box.settle()
    assert box.loads == [("B", frozenset("A"))]


def test_other_models_run_alone_even_if_they_are_resident() -> None:
    keep = GroupConfig(id="keep", persistent=True, exclusive=False, swap=False, members=("D",))
    box = wide_box("AD", groups=(GroupConfig(id="g", members=("A",)), keep))
    box.fleet.ready.add("D")
    box.arrive("A", job=5.0)

    box.arrive("D", 100)
    box.arrive("A", 100)
    assert box.dispatched == [1]

    box.settle()
    assert box.dispatched == [1, 2, 3]


def test_an_unload_ends_all_of_them_and_those_who_wait_start_the_model_again_once() -> None:
    box = wide_box()
    for _ in range(5):
        box.arrive("A", job=10.0)

    box.unload("A")

    assert [box.life[number] for number in (1, 2, 3)] == [Life.ENDED] * 3
    assert box.loads == [("A", frozenset())]
    box.settle()
    assert box.served == [1, 2, 3, 4, 5]
    assert box.served_at[5] == box.served_at[4]


def test_when_the_better_one_s_model_is_unloaded_the_next_are_let_in_at_once() -> None:
    keep = GroupConfig(id="keep", persistent=True, exclusive=False, swap=False, members=("D",))
    box = wide_box("AD", groups=(GroupConfig(id="g", members=("A",)), keep))
    box.fleet.ready.add("D")
    box.arrive("A", job=10.0)
    box.arrive("D", 5)
    box.arrive("A")
    assert box.dispatched == [1]

    box.unload("D")

    assert box.dispatched == [1, 3]


def test_an_unload_during_the_load_fails_the_one_that_needed_it() -> None:
    box = wide_box(ready=False)
    first, second = box.arrive("A"), box.arrive("A")

    box.unload("A")

    assert isinstance(box.refused[first.number], ModelUnloaded)
    assert box.where(second) is Life.DISPATCHED
    box.settle()
    assert box.served == [2]


def test_while_the_server_is_gone_nobody_is_let_in_and_what_runs_goes_on() -> None:
    box = wide_box()
    running = box.arrive("A", job=10.0)
    box.fleet.ready.discard("A")  # it died, and the running job's own lease starts it again

    box.arrive("A")
    assert box.dispatched == [1]

    box.fleet.ready.add("A")
    box.arrive("A")
    assert box.dispatched == [1, 2, 3]
    assert box.where(running) is Life.SERVING


def test_a_load_that_fails_fails_the_one_that_needed_it() -> None:
    box = wide_box(ready=False)
    box.fleet.broken.add("A")
    first, second = box.arrive("A"), box.arrive("A")

    box.advance(2.0)

    assert isinstance(box.refused[first.number], LoadRefused)
    assert box.where(second) is Life.DISPATCHED


def test_a_client_that_leaves_makes_room_for_the_next() -> None:
    box = wide_box()
    running = [box.arrive("A", job=10.0) for _ in range(3)]
    box.arrive("A")

    box.cancel(running[1])

    assert box.dispatched == [1, 2, 3, 4]


def test_a_smaller_width_after_a_reload_lets_nobody_in_until_so_many_have_ended() -> None:
    box = wide_box()
    for seconds in (2.0, 4.0, 6.0, 1.0):
        box.arrive("A", job=seconds)

    box.reload(serial_box("AB", width={"A": 2}))
    box.advance(3.9)
    assert box.dispatched == [1, 2, 3]

    box.settle()
    assert box.served_at[4] == 4.0


def test_what_fifo_left_running_is_joined_as_far_as_the_width_goes() -> None:
    box = fifo_box("AB", limits={"A": 2})
    box.fleet.ready.add("A")
    box.arrive("A", job=5.0)
    box.arrive("A", job=9.0)

    box.reload(serial_box("AB", width={"A": 3}))
    for _ in range(2):
        box.arrive("A", job=1.0)
    assert box.dispatched == [1, 2, 3]

    box.settle()
    assert box.served_at[4] == 1.0


def test_what_fifo_left_running_side_by_side_is_joined_by_nobody() -> None:
    together = (GroupConfig(id="g", swap=False, members=("A", "B")),)
    box = fifo_box("AB", groups=together)
    box.fleet.ready |= {"A", "B"}
    box.arrive("A", job=9.0)
    box.arrive("B", job=5.0)

    box.reload(serial_box("AB", groups=together, width={"A": 3}))
    box.arrive("A")
    box.advance(4.9)
    assert box.dispatched == [1, 2]

    box.advance(0.2)
    assert box.dispatched == [1, 2, 3]


def test_when_the_daemon_stops_nobody_is_let_in() -> None:
    box = wide_box()
    box.arrive("A", job=10.0)
    box.arrive("B", 100)
    box.arrive("A")

    box.close()
    box.settle()

    assert box.served == [1]


def test_a_width_of_one_is_one_job_at_a_time() -> None:
    box = serial_box("A", width={"A": 1})
    box.fleet.ready.add("A")
    box.arrive("A", job=5.0)
    box.arrive("A")

    assert box.dispatched == [1]
