"""What a row tells of the turn that its request took."""

from __future__ import annotations

import msgspec
import pytest

from llamaswap.scheduling.noted import QUEUE_WAIT, Noted, read
from llamaswap.scheduling.vocabulary import Band, Term, Verdict, waiting_metadata


def test_what_the_serial_scheduler_writes_is_read_back() -> None:
    verdict = Verdict(
        priority=100,
        band=Band.INTERACTIVE,
        waited_us=2_500_000,
        thousandths=101_500,
        changed_by=frozenset({Term.AGING}),
    )
    noted = read(
        msgspec.json.encode({**verdict.metadata, "serial_load_ms": "1500", "caller": "ada"}).decode()
    )

    assert (noted.scheduled, noted.timed) == (True, True)
    assert (noted.priority, noted.waited, noted.load) == (100, 2.5, 1.5)
    assert noted.run(10.0) == 6.0
    assert QUEUE_WAIT in verdict.metadata


def test_a_run_is_never_negative_though_each_time_was_rounded() -> None:
    assert Noted(serial_queue_wait_ms="1001", serial_load_ms="0").run(1.0) == 0.0


def test_who_was_never_dispatched_tells_no_times_of_a_job() -> None:
    noted = read(msgspec.json.encode(waiting_metadata(0, 7_000_000)).decode())

    assert (noted.scheduled, noted.timed, noted.waited) == (True, False, 7.0)


def test_under_fifo_nobody_tells_times() -> None:
    noted = read('{"fifo_priority": "-90"}')

    assert (noted.scheduled, noted.timed, noted.priority) == (True, False, -90)


@pytest.mark.parametrize(
    "metadata", ["", "{", "[]", "null", "{}", '{"serial_queue_wait_ms": 5, "serial_load_ms": 0}']
)
def test_what_cannot_be_read_tells_nothing(metadata: str) -> None:
    noted = read(metadata)

    assert noted == Noted()
    assert (noted.scheduled, noted.timed, noted.run(3.0)) == (False, False, 3.0)


@pytest.mark.parametrize("number", ["soon", "-5", "1.5", " "])
def test_numbers_that_make_no_sense_are_no_times(number: str) -> None:
    assert not Noted(serial_queue_wait_ms=number, serial_load_ms="0").timed
    assert not Noted(serial_queue_wait_ms="0", serial_load_ms=number).timed
