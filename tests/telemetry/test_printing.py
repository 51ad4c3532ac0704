from __future__ import annotations

from twisted.internet.task import Clock

from llamaswap.telemetry.printing import GATHER, MOST_GATHERED, Printer


class Screen:
    """Somebody who reads, or has gone."""

    def __init__(self) -> None:
        self.seen: list[bytes] = []
        self.gone = False
        self.clock = Clock()
        self.printer = Printer(self.write, self.clock)

    def write(self, data: bytes) -> None:
        if self.gone:
            raise BrokenPipeError
        self.seen.append(data)


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


def test_what_is_flushed_is_not_written_again() -> None:
    screen = Screen()
    screen.printer.take(b"last words\n")
    screen.printer.flush()
    screen.printer.flush()
    screen.clock.advance(GATHER)

    assert screen.seen == [b"last words\n"]


def test_a_reader_that_has_gone_hurts_nobody() -> None:
    screen = Screen()
    screen.gone = True
    screen.printer.take(b"x")
    screen.clock.advance(GATHER)
    screen.printer.take(b"y" * (MOST_GATHERED + 1))
    screen.printer.flush()

    assert screen.seen == []
