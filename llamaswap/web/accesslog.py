"""The access log: one line for each answered request, in the words that llama-swap's readers parse.

Knows what a line says and which requests get none; an exchange says when it
is over (`Exchange.on_end`).
"""

from __future__ import annotations

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from llamaswap.activity.record import ABORTED
from llamaswap.config.durations import duration_text
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.heads import RequestHead
from llamaswap.telemetry.inflight import remote_ip
from llamaswap.telemetry.loglines import LogLines, one_line

# The one event whose words are not ours to choose.
LINE = 'Request {ip} "{method} {path} {protocol}" {status} {size_bytes} "{agent}" {duration}'

UNLOGGED = (b"/wol-health", b"/api/performance", b"/metrics")
"""Beginnings of paths that are asked for every few seconds by machines."""

MOST_CHARACTERS = 1024
"""Of one field: a head may hold far more, and one request must not push all others out of the log."""

Fields = dict[str, str | int]


class AccessLog:
    """Logs each exchange that it is shown, when that is over.

    Args:
        clock: the one that stamps `Exchange.received`.
        lines: where a line may go directly, as long as nobody else observes events: 1.5 us instead of 20.
    """

    _log = Logger()

    def __init__(self, clock: IReactorTime, lines: LogLines | None = None) -> None:
        self._clock = clock
        self._lines = lines

    def watch(self, exchange: Exchange) -> None:
        """Log this exchange when it ends, unless it is one of those that nobody wants to read of."""
        if is_logged(exchange.head.path):
            exchange.on_end = self._write

    def _write(self, exchange: Exchange) -> None:
        seconds = self._clock.seconds() - exchange.received
        lines = self._lines
        if lines is None or not lines.alone:
            self._log.info(LINE, **line_fields(exchange, seconds))
        elif lines.shows_info:
            lines.say(line_text(exchange, seconds))


def is_logged(path: bytes) -> bool:
    """Return whether a request for this path gets a line."""
    return not path.startswith(UNLOGGED)


def line_fields(exchange: Exchange, seconds: float) -> Fields:
    """Return what `LINE` needs to know of an exchange that is over.

    The path is the one received, still escaped and without its query.  A
    client that left before it was answered counts as 499.

    Args:
        seconds: from the request's head to the end of its response.
    """
    head = exchange.head
    major, minor = head.version
    return {
        "ip": quoted(client_ip(head, exchange.client_host)),
        "method": quoted(head.method),
        "path": quoted(head.path),
        "protocol": f"HTTP/{major}.{minor}",
        "status": exchange.status or ABORTED,
        "size_bytes": exchange.body_bytes,
        "agent": quoted(head.get(b"user-agent") or b""),
        "duration": duration_text(seconds),
    }


def line_text(exchange: Exchange, seconds: float) -> str:
    """Return `LINE` with what `line_fields` returns; what follows from the head is remembered with it."""
    claimed, asked, agent = exchange.head.derived("access line", _said_by)
    ip = claimed or exchange.client_host or "-"
    size = exchange.body_bytes
    return f'Request {ip} "{asked}" {exchange.status or ABORTED} {size} "{agent}" {duration_text(seconds)}'


def _said_by(head: RequestHead) -> tuple[str, str, str]:
    """Return whom a head claims to come from, '' for nobody, its first line, and its user agent."""
    major, minor = head.version
    return (
        quoted(remote_ip(head, "").encode("latin-1")),
        f"{quoted(head.method)} {quoted(head.path)} HTTP/{major}.{minor}",
        quoted(head.get(b"user-agent") or b""),
    )


def client_ip(head: RequestHead, peer: str) -> bytes:
    """Return who asked: the first of X-Forwarded-For, else X-Real-IP, else the socket's peer.

    Proxies in front of us are believed; the name may be forged, and is good for reading only.
    A peer on a UNIX socket has none and is called `-`.
    """
    return remote_ip(head, peer).encode("latin-1") or b"-"


def quoted(value: bytes) -> str:
    r"""Return a field's text so that it cannot end its quotes: `"` and `\` get a backslash."""
    text = value.decode("utf-8", "backslashreplace").replace("\\", "\\\\").replace('"', '\\"')
    return one_line(text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + "...")
