from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from twisted.internet.task import Clock
from twisted.logger import capturedLogs, formatEvent

from llamaswap.telemetry.printing import (
    GATHER,
    LOOK_AGAIN,
    MOST_GATHERED,
    MOST_KEPT,
    Printer,
    writing_to,
)


class Screen:
    """Somebody who reads, or has gone."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.gone = False
        self.room = 1 << 30  # bytes that may still be written
        self.clock = Clock()
        self.printer = Printer(self.write, self.clock)

    def write(self, data: bytes, patience: float) -> int:
        if self.gone:
            raise BrokenPipeError
        taken = data[: self.room]
        if taken:
            self.seen.append(taken)
        self.room -= len(taken)
        return len(taken)


def test_lines_of_one_moment_are_written_in_one_piece_and_in_order() -> None:
    screen = Screen()
    screen.printer.take(b"one\n")
    screen.printer.take(b"two\n")
    assert screen.seen == []

    screen.clock.advance(GATHER)

    assert screen.seen == [b"one\ntwo\n"]
    assert screen.clock.getDelayedCalls() == []


def test_a_later_line_has_a_moment_of_its_own() -> None:
    screen = Screen()
    for line in (b"one\n", b"two\n"):
        screen.printer.take(line)
        screen.clock.advance(GATHER)

    assert screen.seen == [b"one\n", b"two\n"]


def test_a_flood_is_not_gathered_for_long() -> None:
    screen = Screen()
    for _ in range(3):
        screen.printer.take(b"x" * (MOST_GATHERED // 2 + 1))

    assert len(screen.seen) == 1
    screen.clock.advance(GATHER)
    assert len(b"".join(screen.seen)) == 3 * (MOST_GATHERED // 2 + 1)


def test_the_last_words_are_not_written_again() -> None:
    screen = Screen()
    screen.printer.take(b"last words\n")
    screen.printer.finish()
    screen.printer.finish()
    screen.clock.advance(GATHER)

    assert screen.seen == [b"last words\n"]


def test_a_reader_that_has_gone_hurts_nobody() -> None:
    screen = Screen()
    screen.gone = True
    screen.printer.take(b"x")
    screen.clock.advance(GATHER)
    screen.printer.take(b"y" * (MOST_GATHERED + 1))
    screen.printer.finish()

    assert screen.seen == []


def test_what_a_slow_reader_has_no_room_for_is_written_when_he_has() -> None:
    screen = Screen()
    screen.room = 5
    screen.printer.take(b"one\ntwo\n")
    screen.clock.advance(GATHER)
    screen.printer.take(b"three\n")
    screen.clock.advance(LOOK_AGAIN)
    assert b"".join(screen.seen) == b"one\nt"

    screen.room = 1 << 30
    screen.clock.advance(LOOK_AGAIN)

    assert b"".join(screen.seen) == b"one\ntwo\nthree\n"
    assert screen.clock.getDelayedCalls() == []


def test_a_reader_that_is_far_behind_misses_what_is_more_and_is_told_so() -> None:
    screen = Screen()
    screen.room = 0
    for _ in range(3):
        screen.printer.take(b"x" * (MOST_KEPT // 2))
        screen.clock.advance(LOOK_AGAIN)
    assert screen.seen == []

    screen.room = 1 << 30
    with capturedLogs() as said:
        screen.clock.advance(LOOK_AGAIN)

    assert b"".join(screen.seen) == b"x" * MOST_KEPT
    assert [formatEvent(event) for event in said] == [f"printing.reader_lags lost_bytes={MOST_KEPT // 2}"]


def test_the_end_does_not_wait_for_who_does_not_read() -> None:
    screen = Screen()
    screen.room = 0
    screen.printer.take(b"last words\n")

    screen.printer.finish()

    assert screen.seen == []


@pytest.fixture(params=[os.pipe, os.openpty], ids=["pipe", "terminal"])
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[int, int]]:
    """Where to read and where to write."""
    one, other = request.param()
    yield one, other
    os.close(one)
    os.close(other)


def test_a_pipe_or_a_terminal_that_nobody_reads_takes_some_and_holds_nobody_up(ends: tuple[int, int]) -> None:
    reader, writer = ends
    write = writing_to(writer)

    written = write(b"x" * (1 << 20), 0.0)

    assert 0 < written < 1 << 20
    assert os.get_blocking(writer), "a shell may have it, too"
    while written > 0:
        written -= len(os.read(reader, 1 << 20))
    assert write(b"more", 1.0) == 4
