"""The access log."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.logger import ILogObserver, LogEvent, globalLogPublisher
from zope.interface import implementer

from llamaswap.http1.exchange import Exchange
from llamaswap.http1.heads import RequestHead
from llamaswap.processes.logbook import Logbook
from llamaswap.telemetry.loglines import LogLines, format_line
from llamaswap.web.accesslog import AccessLog, client_ip, is_logged, quoted
from support.http1_wires import Clients, End


def head(*fields: tuple[bytes, bytes]) -> RequestHead:
    return RequestHead(b"GET", b"/", (1, 1), fields)


@implementer(ILogObserver)
class Lines:
    """Keeps what the access log says, as the service's log shows it."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __call__(self, event: LogEvent) -> None:
        if event.get("log_namespace") == "llamaswap.web.accesslog.AccessLog":
            self.lines.append(format_line(event))


@contextmanager
def lines() -> Iterator[list[str]]:
    """What the access log says meanwhile."""
    seen = Lines()
    globalLogPublisher.addObserver(seen)
    try:
        yield seen.lines
    finally:
        globalLogPublisher.removeObserver(seen)


def ask(request: bytes, direct: LogLines | None = None) -> tuple[Exchange, End, Clock]:
    """An exchange that is watched and waits to be answered."""
    clock = Clock()
    seen: list[Exchange] = []

    async def handler(exchange: Exchange) -> None:
        AccessLog(clock, direct).watch(exchange)
        seen.append(exchange)
        await Deferred[None]()

    client = Clients(handler, clock).connect()
    client.send(request)
    return seen[0], client, clock


def test_an_answered_request_is_one_line() -> None:
    with lines() as seen:
        exchange, _, clock = ask(
            b"GET /running?x=1 HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 203.0.113.7, 10.0.0.1\r\n"
            b"User-Agent: ua/1\r\n\r\n"
        )
        clock.advance(0.0015)
        exchange.respond(200, b"hello\n")

    assert seen == ['[INFO] Request 203.0.113.7 "GET /running HTTP/1.1" 200 6 "ua/1" 1.5ms\n']


def test_a_stream_is_logged_when_it_ends_and_counts_what_it_carried() -> None:
    with lines() as seen:
        exchange, client, clock = ask(b"GET /logs/stream HTTP/1.0\r\n\r\n")
        stream = exchange.stream(200)
        stream.write(b"12345")
        assert seen == []
        clock.advance(90.25)
        client.leave()

    assert seen == ['[INFO] Request 192.168.1.1 "GET /logs/stream HTTP/1.0" 200 5 "" 1m30.25s\n']


def test_who_left_without_an_answer_counts_as_499() -> None:
    with lines() as seen:
        _, client, _ = ask(b"GET /running HTTP/1.1\r\nHost: h\r\n\r\n")
        client.leave()

    assert seen == ['[INFO] Request 192.168.1.1 "GET /running HTTP/1.1" 499 0 "" 0s\n']


@pytest.mark.parametrize("path", [b"/metrics", b"/metricsfoo", b"/wol-health", b"/api/performance?after=x"])
def test_what_machines_ask_for_all_the_time_is_not_logged(path: bytes) -> None:
    with lines() as seen:
        exchange, _, _ = ask(b"GET %b HTTP/1.1\r\nHost: h\r\n\r\n" % path)
        exchange.respond(200)

    assert seen == []


def test_other_paths_with_such_words_are_logged() -> None:
    assert is_logged(b"/api/metrics/activity")
    assert is_logged(b"/upstream/m1/metrics")
    assert is_logged(b"/Metrics")


@pytest.mark.parametrize(
    ("fields", "ip"),
    [
        ([(b"X-Forwarded-For", b" 203.0.113.7 , 10.0.0.1"), (b"X-Real-IP", b"198.51.100.1")], b"203.0.113.7"),
        ([(b"X-Real-IP", b" 198.51.100.1 ")], b"198.51.100.1"),
        ([(b"x-forwarded-for", b", 10.0.0.1"), (b"x-real-ip", b"198.51.100.1")], b"198.51.100.1"),
        ([], b"127.0.0.1"),
    ],
)
def test_the_client_is_whom_the_first_proxy_saw(fields: list[tuple[bytes, bytes]], ip: bytes) -> None:
    assert client_ip(head(*fields), "127.0.0.1") == ip


def test_a_unix_peer_has_no_address() -> None:
    assert client_ip(head(), "") == b"-"


def test_no_field_can_end_its_quotes_or_its_line() -> None:
    with lines() as seen:
        exchange, _, _ = ask(
            b'GET /x HTTP/1.1\r\nHost: h\r\nUser-Agent: a" 200 1 "b\\\tc {ip} \xff\r\n\r\n',
        )
        exchange.respond(200)

    (line,) = seen
    assert line.count("\n") == 1
    assert r'200 0 "a\" 200 1 \"b\\\tc {ip} \\xff" ' in line.replace(r"\\\\", r"\\")


FIELD = st.binary(max_size=30).map(lambda value: bytes(set(value) - set(b"\r\n\0")))


@given(FIELD, FIELD, FIELD, st.booleans())
def test_a_line_that_goes_directly_into_the_log_is_the_one_that_an_event_becomes(
    agent: bytes, forwarded: bytes, path: bytes, answered: bool
) -> None:
    book = Logbook()
    direct = LogLines(book, "info")
    written = []
    for alone in (False, True):
        direct.alone = alone
        with lines() as seen:
            exchange, client, clock = ask(
                b"GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: %b\r\nX-Forwarded-For: %b\r\n\r\n"
                % (agent.hex().encode(), forwarded.hex().encode()),
                direct,
            )
            exchange.head = RequestHead(
                b"GET", b"/" + path, (1, 1), ((b"User-Agent", agent), (b"X-Forwarded-For", forwarded))
            )
            clock.advance(0.25)
            if answered:
                exchange.respond(200, b"hello\n")
            client.leave()
        written.append("".join(seen))

    assert written == [book.history().decode(), ""]


def test_a_direct_line_is_written_only_at_a_level_that_shows_it() -> None:
    book = Logbook()
    direct = LogLines(book, "warn")
    direct.alone = True
    exchange, _, _ = ask(b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n", direct)
    exchange.respond(200)

    assert book.history() == b""


def test_a_unix_peer_is_called_a_dash_in_a_direct_line() -> None:
    book = Logbook()
    direct = LogLines(book, "info")
    direct.alone = True
    exchange, _, _ = ask(b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n", direct)
    exchange.client_host = ""
    exchange.respond(204)

    assert book.history() == b'[INFO] Request - "GET /x HTTP/1.1" 204 0 "" 0s\n'


def test_an_endless_field_is_cut() -> None:
    assert len(quoted(b"a" * 100_000)) == 1027
