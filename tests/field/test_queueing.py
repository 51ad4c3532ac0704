"""Cases from the field: who goes next, and how long the others wait."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import pytest

from support.field import Field
from support.field_call import Call
from support.field_crowd import Crowd
from support.field_scale import Scale
from support.field_watch import nobody_waits_for_nothing

pytestmark = pytest.mark.integration


def serial(divisor: float, bonus: int) -> dict[str, object]:
    """The scheduler's part of a configuration."""
    settings = {"serial": {"agingDivisor": divisor, "swapAffinityBonus": bonus}}
    return {"routing": {"scheduler": {"use": "serial", "settings": settings}}}


def assert_all_ok(calls: list[Call]) -> None:
    """Assert that each ends with a whole answer."""
    assert [call.wait().wrong() for call in calls] == [""] * len(calls)


@pytest.mark.lasts(seconds=18)
@pytest.mark.parametrize("use", ["serial", pytest.param("fifo", marks=pytest.mark.soak(seconds=15))])
def test_case_041_a_swap_waits_for_the_running_answers_and_changes_no_byte_of_them(
    use: str, tmp_path: Path, scale: Scale
) -> None:
    long = {"tokens": scale(100, 14), "gap": 0.1, "split": True}
    with Field(tmp_path, dict.fromkeys("ABC", ""), config={"routing": {"scheduler": {"use": use}}}) as field:
        wanted = field.chat("A", stream=True, stub={**long, "gap": 0.0}).body
        streamed = field.send("A", stream=True, stub=long)
        whole = field.send("A", stub={**long, "gap": 0.05})
        field.until(lambda: streamed.text, "its first words")
        second = field.send("B")
        field.until(lambda: field.daemon.waiting() == (1 if use == "fifo" else 2), "B to wait")
        third = field.send("C")

        assert_all_ok([streamed, whole, second, third])

        assert streamed.body == wanted
        assert [note["alias"] for note in field.records("arrived")] == ["A", "A", "A", "B", "C"]
        (asked_to_end,) = field.records("term", "A")
        assert asked_to_end["at"] >= max(note["at"] for note in field.records("request", "A"))
        assert field.starts() == 3


@pytest.mark.lasts(seconds=22)
def test_case_043_a_b_a_a_c_a_b_c_takes_three_starts_and_keeps_the_order_within_each(
    tmp_path: Path, scale: Scale
) -> None:
    each, load = scale.seconds(1.0, 0.05), scale.seconds(2.0, 0.1)
    with Field(tmp_path, dict.fromkeys("ABC", f"--load {load} --first {each}")) as field:
        calls = [field.prepare(model, tag=f"{model}{at}") for at, model in enumerate("ABAACABC")]
        field.together(calls)
        assert_all_ok(calls)

        assert field.starts() == 3
        tags = [note["tag"] for note in field.records("arrived")]
        assert tags == ["A0", "A2", "A3", "A5", "B1", "B6", "C4", "C7"]


@pytest.mark.parametrize(
    "bonus",
    [
        pytest.param(0, marks=pytest.mark.soak(seconds=5)),
        10,
        pytest.param(99, marks=pytest.mark.soak(seconds=10)),
    ],
)
def test_case_044_a_cold_request_starts_once_its_lead_is_more_than_affinity_is_worth(
    bonus: int, tmp_path: Path
) -> None:
    divisor = 0.05
    window = bonus * divisor
    with Field(tmp_path, {"A": "", "B": ""}, config=serial(divisor, bonus)) as field:
        with Crowd(field, "A", 3, stub={"first": 0.05}) as crowd, nobody_waits_for_nothing(field):
            field.until(lambda: len(crowd.calls) > 6, "a crowd")
            assert field.chat("B", tag="cold").wrong() == ""
            served = len(crowd.calls)
            field.until(lambda: len(crowd.calls) > served + 6, "the crowd to go on")

        (row,) = [row for row in field.rows() if row["model"] == "B"]
        waited = int(row["metadata"]["serial_queue_wait_ms"]) / 1000
        # Beside it wait two or three jobs' worth of others; a busy machine makes those longer.
        assert window <= waited <= window + 1.5


# --- clocks ------------------------------------------------------------------------------------------------

RESTLESS = """
import random, time

real, dice = time.time, random.Random(45)
time.time = lambda: real() + dice.choice((-86400.0, 0.0, 86400.0))

from llamaswap.cli import main

main()
"""
"""A daemon on a machine whose wall clock is set forth and back by a day, all the time."""


def test_case_045_neither_a_wall_clock_that_jumps_nor_a_suspended_daemon_reorders_who_waits(
    tmp_path: Path,
) -> None:
    with Field(tmp_path, {"A": ""}, config=serial(0.1, 0), command=(sys.executable, "-c", RESTLESS)) as field:
        running = field.send("A", stub={"hang": True}, tag="running")
        field.until(lambda: field.records("arrived"), "its arrival")
        calls = []
        # A point is worth a tenth of a second: 20 of them more than all of this takes.
        for place, priority in enumerate(("0", "0", "20", "0", "-20", "20")):
            calls.append(field.send("A", priority=priority, tag=f"{priority} {place}"))
            field.until(lambda wanted=place + 1: field.daemon.waiting() == wanted, "it to wait")  # type: ignore[misc]  # mypy cannot infer a lambda's default
        field.daemon.process.send_signal(signal.SIGSTOP)
        time.sleep(0.3)
        field.daemon.process.send_signal(signal.SIGCONT)
        running.leave()
        assert_all_ok(calls)

        tags = [note["tag"] for note in field.records("arrived")]
        assert tags == ["running", "20 2", "20 5", "0 0", "0 1", "0 3", "-20 4"]
        waits = [int(row["metadata"]["serial_queue_wait_ms"]) for row in field.rows(7)]
        assert all(0 <= wait < 10_000 for wait in waits)


ODD_PRIORITIES = {
    None: 0,
    "": 0,
    "interactive": 100,
    "Batch": -100,
    "high": 0,
    "100.0": 0,
    "1e9": 0,
    "+5": 5,
    " 7 ": 7,
    "1_000": 0,
    "١٢": 0,
    "NaN": 0,
    "0x10": 0,
    "9" * 400: 0,
    "9" * 5000: 0,
    "\xff\xfe": 0,
    str(2**63 - 1): 2**63 - 1,
    str(-(2**63)): -(2**63),
}


def test_case_061_no_priority_that_a_client_can_think_of_stops_the_queue(tmp_path: Path) -> None:
    with Field(tmp_path, {"A": ""}) as field:
        running = field.send("A", stub={"hang": True}, tag="running")
        field.until(lambda: field.records("arrived"), "its arrival")
        calls = [field.prepare("A", priority=said) for said in ODD_PRIORITIES]
        twice = field.prepare("A", headers={"X-LlamaSwap-Priority": "3", "x-llamaswap-priority": "100"})
        field.together([*calls, twice])
        field.until(lambda: field.daemon.waiting() == len(calls) + 1, "all to wait")
        running.leave()
        assert_all_ok([*calls, twice])

        rows = field.rows(len(ODD_PRIORITIES) + 2)
        counted = [int(row["metadata"]["serial_priority"]) for row in rows[1:]]
        assert counted == sorted([*ODD_PRIORITIES.values(), 3], reverse=True)
        unparseable = [said for said, means in ODD_PRIORITIES.items() if means == 0 and said is not None]
        assert field.metric("llamaswap_scheduler_unparseable_priorities_total") == len(unparseable)
