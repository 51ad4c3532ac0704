"""What a log event looks like as a line, and whose book it ends up in."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.logger import Logger, LogLevel
from twisted.python.failure import Failure

from llamaswap.processes.logbook import Logbook
from llamaswap.telemetry.loglines import Logbooks, LogLines, one_line


def lines_of(level: str = "debug") -> tuple[Logger, Logbook]:
    """A logger that writes into a book."""
    book = Logbook()
    return Logger(namespace="llamaswap.somewhere", observer=LogLines(book, level)), book


def test_an_event_is_a_line_with_its_level() -> None:
    log, book = lines_of()

    log.info("dispatch.served model={model} waited={waited:.1f}s", model="qwen3", waited=3.44)
    log.warn("x.y")
    log.error("x.z")
    log.debug("größe")

    assert book.history().decode() == (
        "[INFO] dispatch.served model=qwen3 waited=3.4s\n[WARN] x.y\n[ERROR] x.z\n[DEBUG] größe\n"
    )


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("debug", ["DEBUG", "INFO", "WARN", "ERROR"]),
        ("info", ["INFO", "WARN", "ERROR"]),
        ("warn", ["WARN", "ERROR"]),
        (" ERROR ", ["ERROR"]),
        ("loud", ["INFO", "WARN", "ERROR"]),
    ],
)
def test_the_level_filters(level: str, shown: list[str]) -> None:
    log, book = lines_of(level)

    for name in ("debug", "info", "warn", "error"):
        log.emit(LogLevel.levelWithName(name), "x")

    assert book.history().decode().splitlines() == [f"[{name}] x" for name in shown]


@pytest.mark.parametrize(
    "evil",
    [
        "a\n[ERROR] forged",
        "a\r[ERROR] forged",
        "\x1b[2J\x1b[H",
        "\u2028[ERROR]",
        "\x00\x07\x7f\x9b",
        "\ud800",
    ],
)
def test_what_a_caller_wrote_cannot_forge_a_line_or_move_a_cursor(evil: str) -> None:
    log, book = lines_of()

    log.info("inference.ended path={path}", path=evil)

    (line,) = book.history().decode().splitlines()
    assert line.startswith("[INFO] inference.ended path=")
    assert line.isprintable()


@given(st.text(st.characters(exclude_categories=[])))
def test_one_line_is_always_one_printable_line(text: str) -> None:
    assert one_line(text).isprintable()
    if text.isprintable():
        assert one_line(text) == text


@pytest.mark.parametrize("level", ["debug", "info", "warn", "error"])
@pytest.mark.parametrize("time_format", ["", "rfc3339", "kitchen"])
@pytest.mark.parametrize("text", ["Request x", "größe", "a\n[ERROR] forged", "\ud800"])
def test_what_is_said_directly_is_the_line_that_an_event_becomes(
    level: str, time_format: str, text: str
) -> None:
    at = datetime(2026, 11, 29, 17, 30, 5, 250_000, tzinfo=UTC)
    events, direct = Logbook(), Logbook()
    LogLines(events, level, time_format)(
        {
            "log_level": LogLevel.info,
            "log_namespace": "llamaswap.x",
            "log_format": "{text}",
            "text": text,
            "log_time": at.timestamp(),
        }
    )

    LogLines(direct, level, time_format, lambda: at).say(text)

    assert direct.history() == events.history()
    assert bool(direct.history()) == (level in ("debug", "info"))


def test_another_style_holds_for_what_is_said_directly_too() -> None:
    book = Logbook()
    lines = LogLines(book, "error")
    lines.say("hidden")
    lines.set_style("info", "")
    lines.say("shown")

    assert book.history() == b"[INFO] shown\n"


def test_without_a_clock_of_its_own_a_direct_line_has_the_time_of_day() -> None:
    book = Logbook()

    LogLines(book, "info", "rfc3339").say("x")

    stamp, _, rest = book.history().decode().partition(" ")
    assert rest == "[INFO] x\n"
    assert abs((datetime.now(tz=UTC) - datetime.fromisoformat(stamp)).total_seconds()) < 60


def test_a_failure_brings_its_traceback_along_line_by_line() -> None:
    log, book = lines_of()
    try:
        raise ValueError("evil\n[INFO] forged")
    except ValueError:
        log.failure("chores.failed chore={chore}", Failure(), chore="x")

    first, *rest = book.history().decode().splitlines()
    assert first == "[ERROR] chores.failed chore=x"
    assert "ValueError" in "".join(rest)
    assert all(line.startswith("    ") for line in rest)


def test_an_event_that_cannot_be_written_out_is_still_a_line() -> None:
    log, book = lines_of()

    log.info("x {missing}")
    log.info("x {broken.attribute}", broken=1)

    assert len(book.history().decode().splitlines()) == 2


def test_of_what_others_say_only_what_went_wrong_is_kept() -> None:
    book = Logbook()
    log = Logger(namespace="twisted.internet", observer=LogLines(book, "debug"))

    log.info("Starting factory")
    log.warn("something is odd")

    assert book.history() == b"[WARN] something is odd\n"


def test_an_event_without_a_level_is_nobodys_line() -> None:
    book = Logbook()

    LogLines(book, "debug")({"log_format": "x"})

    assert book.history() == b""


@pytest.mark.parametrize(
    ("show", "combined"),
    [("proxy", b"p"), ("upstream", b"u"), ("both", b"pu"), ("none", b"")],
)
def test_the_combined_log_holds_what_was_asked_for(show: str, combined: bytes) -> None:
    books = Logbooks(show)

    books.proxy.append(b"p")
    books.upstream.append(b"u")

    assert books.combined.history() == combined
    assert (books.proxy.history(), books.upstream.history()) == (b"p", b"u")
