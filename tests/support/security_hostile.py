"""What somebody with bad intentions would write, and everything that is written down of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO

from hypothesis import strategies as st
from twisted.logger import ILogObserver, globalLogPublisher, textFileLogObserver

from llamaswap.telemetry.loglines import LogLines
from support.web_daemon import WebDaemon

SHARP = "\x00\x07\x08\t\n\x0b\x0c\r\x1b\x7f\x85\x9b\u200b\u2028\u2029\u202e\ufeff\"'\\<>&{}$`%;|#:/=,."

texts = st.text(
    alphabet=st.one_of(st.sampled_from(SHARP), st.characters(exclude_categories=["Cs"])), max_size=40
)
"""Any text, mostly of characters that mean something to somebody."""

values = texts.map(lambda text: "".join(c for c in text if c >= " " and c != "\x7f").strip())
"""The same, as far as a header field can carry it."""

FORGED = [
    "\x1b[2J\x1b[31mred",
    "a\n[ERROR] service.stopped",
    "a\r[ERROR] service.stopped",
    "a\u2028[ERROR] service.stopped",
    "a\x85[ERROR] service.stopped",
    "a\x9b31m",
    "\u202egnp.exe",
    "\x1b]0;title\x07",
    "{model} {log_level} {0.__class__}",
    "</p><script>alert(1)</script>",
    "\n\nevent:message\ndata:{}\n\n",
    'a"} 1\nllamaswap_swaps_total{model="forged',
    "$(touch /tmp/x); `id` | ${PORT} ${PID} ${env.HOME}",
]
"""One of each kind."""


@contextmanager
def logged(daemon: WebDaemon) -> Iterator[None]:
    """Have the daemon's events become lines of its log, as its service does it, and only those."""
    lines = LogLines(daemon.books.proxy, "debug")
    with observed(lines):
        yield


@contextmanager
def observed(observer: ILogObserver) -> Iterator[None]:
    """Show every event to an observer."""
    globalLogPublisher.addObserver(observer)
    try:
        yield
    finally:
        globalLogPublisher.removeObserver(observer)


@contextmanager
def logged_by_twistd() -> Iterator[StringIO]:
    """Collect what twistd's own log would hold."""
    log = StringIO()
    with observed(textFileLogObserver(log)):
        yield log
