"""The daemon's own log: events as lines, kept for `/logs` and filtered by level.

Twisted's log events go through the whole process, so the observer is added
when a service starts and taken away when it stops.  An event takes 20 us to
become a line that way; what is said of every request can go straight into the
log instead, as long as nobody but us listens to the events.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from twisted.logger import ILogObserver, LogEvent, LogLevel, formatEvent
from zope.interface import implementer

from llamaswap.processes.logbook import Logbook
from llamaswap.telemetry.logstamps import layout_of

_LEVELS = {"debug": LogLevel.debug, "info": LogLevel.info, "warn": LogLevel.warn, "error": LogLevel.error}
_NAMES = {
    LogLevel.debug: "DEBUG",
    LogLevel.info: "INFO",
    LogLevel.warn: "WARN",
    LogLevel.error: "ERROR",
    LogLevel.critical: "ERROR",
}


class Logbooks:
    """The logs that belong to no single model.

    Args:
        show: `logToStdout`: which of them `/logs` shows: proxy, upstream, both or none.
    """

    def __init__(self, show: str) -> None:
        self.proxy = Logbook()
        self.upstream = Logbook()
        self.combined = Logbook()
        if show in ("proxy", "both"):
            self.proxy.subscribe(self.combined.append)
        if show in ("upstream", "both"):
            self.upstream.subscribe(self.combined.append)


@implementer(ILogObserver)
class LogLines:
    """Writes events of `llamaswap` loggers as `[LEVEL] text` lines into a logbook.

    Args:
        level: `logLevel`: debug, info, warn or error; anything else is info.
        time_format: `logTimeFormat`: the name of a layout; anything else is no time.
        now: the time of what is said directly; an event brings its own.
    """

    def __init__(
        self, book: Logbook, level: str, time_format: str = "", now: Callable[[], datetime] | None = None
    ) -> None:
        self.alone = False  # nobody else in this process observes events, so that `say` may replace them
        self._book = book
        self._now = now or _now
        self.set_style(level, time_format)

    def set_style(self, level: str, time_format: str) -> None:
        """Let this level and more urgent ones through from now on, with or without a time."""
        self._level = _LEVELS.get(level.strip().lower(), LogLevel.info)
        self._layout = layout_of(time_format)
        self.shows_info = self._level <= LogLevel.info  # whether `say` does anything

    def say(self, text: str) -> None:
        """Write the line that an event of level info with this text would become; never raises.

        Only this log gets it, so it is for when it is `alone`.
        """
        if self.shows_info:
            at = None if self._layout is None else self._now()
            self._write(f"[INFO] {one_line(text)}\n", at)

    def __call__(self, event: LogEvent) -> None:
        """Take one event; never raises."""
        level: Any = event.get("log_level")
        if level is None or level < self._level or _is_chatter(event):
            return
        at = None if self._layout is None else datetime.fromtimestamp(event["log_time"], tz=UTC)
        self._write(format_line(event), at)

    def _write(self, line: str, at: datetime | None) -> None:
        if self._layout is not None and at is not None:
            # In the zone of whoever reads the log, as in llama-swap.
            line = f"{self._layout(at.astimezone())} {line}"
        self._book.append(line.encode("utf-8", "replace"))


def _now() -> datetime:
    return datetime.now(tz=UTC)


def _is_chatter(event: LogEvent) -> bool:
    """Return whether an event is what Twisted says about itself, and nothing went wrong."""
    ours = str(event.get("log_namespace", "")).startswith("llamaswap")
    return not ours and event["log_level"] < LogLevel.warn


def format_line(event: LogEvent) -> str:
    """Return `[LEVEL] text` with a newline; what the text says can't forge another line.

    A failure of the program is followed by its traceback, indented.
    """
    level: Any = event.get("log_level")
    line = f"[{_NAMES[level]}] {one_line(formatEvent(event))}\n"
    failure = event.get("log_failure")
    if failure is None:
        return line
    trace = failure.getTraceback().rstrip().split("\n")
    return line + "".join(f"    {one_line(part)}\n" for part in trace)


def one_line(text: str) -> str:
    """Escape what could forge a second line or move a terminal's cursor."""
    if text.isprintable():  # nearly always
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
