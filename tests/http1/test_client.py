"""The pool of upstream connections."""

from __future__ import annotations

from typing import NoReturn

import pytest
from twisted.internet.defer import CancelledError
from twisted.internet.error import ConnectionRefusedError as Refused
from twisted.internet.error import TimeoutError as ConnectTimeout

from llamaswap.http1.client import Pool, UpstreamFailed
from llamaswap.http1.framing import Framing, Sink
from llamaswap.http1.heads import ResponseHead
from llamaswap.http1.securing import Security
from llamaswap.http1.upstream import UpstreamConnection
from support.http1_wires import End, Running, Upstreams
from support.web_daemon import BoxReactor

REQUEST = [b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"]
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Silent:
    """A receiver that does not care."""

    def interim(self, head: ResponseHead) -> None: ...
    def head(self, head: ResponseHead, framing: Framing, *, more: bool) -> Sink | None: ...
    def data(self, data: bytes) -> None: ...
    def ended(self, size: int) -> None: ...
    def failed(self, reason: str, size: int) -> None: ...
    def drained(self) -> None: ...


def no_such_interface(*_: object, **__: object) -> NoReturn:
    raise OSError(-2, "Name or service not known")


def connected(pool: Pool, upstreams: Upstreams, port: int = 80) -> tuple[UpstreamConnection, End]:
    attempt = Running(pool.connect("127.0.0.1", port))
    end = upstreams.accept()
    return attempt.result(), end


def used(pool: Pool, upstreams: Upstreams, port: int = 80) -> tuple[UpstreamConnection, End]:
    """A connection that has carried one request and is back in the pool."""
    connection, end = connected(pool, upstreams, port)
    connection.send(REQUEST, b"GET", Silent())
    end.send(RESPONSE)
    return connection, end


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_an_address_is_connected_to_directly_and_in_time(host: str) -> None:
    upstreams = Upstreams()
    Running(Pool(upstreams, connect_timeout=7).connect(host, 81))

    assert [client[:2] + client[3:4] for client in upstreams.tcpClients] == [(host, 81, 7)]


@pytest.mark.parametrize("why", [Refused(), ConnectTimeout()])
def test_a_connection_that_does_not_come_about_is_a_failed_upstream(why: Exception) -> None:
    upstreams = Upstreams()
    attempt = Running(Pool(upstreams).connect("127.0.0.1", 81))

    upstreams.refuse(why)

    error = attempt.error()
    assert isinstance(error, UpstreamFailed)
    assert error.reason.startswith("cannot connect to 127.0.0.1:81: ")


@pytest.mark.parametrize(
    ("host", "security"), [("a" * 64, None), ("llama_server", Security()), ("fe80::1%none", None)]
)
def test_a_host_that_can_not_be_reached_by_its_name_is_a_failed_upstream(
    host: str, security: Security | None
) -> None:
    upstreams = BoxReactor()
    if "%" in host:
        upstreams.connectTCP = no_such_interface  # type: ignore[method-assign]
    attempt = Running(Pool(upstreams, security=security).connect(host, 81))

    (failed,) = attempt.errors
    assert isinstance(failed, UpstreamFailed)
    assert failed.reason.startswith(f"cannot connect to {host}:81: ")
    assert not failed.sent


def test_a_cancelled_attempt_is_stopped() -> None:
    upstreams = Upstreams()
    attempt = Running(Pool(upstreams).connect("127.0.0.1", 81))

    attempt.cancel()

    assert isinstance(attempt.error(), CancelledError)
    assert upstreams.connectors[0].stoppedConnecting
    assert upstreams.accept().is_aborted()


def test_a_used_connection_is_taken_again_the_latest_first_and_per_address() -> None:
    upstreams = Upstreams()
    pool = Pool(upstreams)
    first, _ = connected(pool, upstreams)
    second, end = connected(pool, upstreams)
    first.send(REQUEST, b"GET", Silent())
    used(pool, upstreams, port=82)
    second.send(REQUEST, b"GET", Silent())
    end.send(RESPONSE)

    assert pool.take("127.0.0.1", 80) is second
    assert pool.take("127.0.0.1", 80) is None
    assert pool.take("127.0.0.1", 81) is None


@pytest.mark.parametrize("leave", [End.leave, End.reset])
def test_an_idle_connection_that_the_upstream_closes_is_forgotten(leave: object) -> None:
    upstreams = Upstreams()
    pool = Pool(upstreams)
    _, end = used(pool, upstreams)

    assert callable(leave)
    leave(end)

    assert pool.take("127.0.0.1", 80) is None
    assert upstreams.getDelayedCalls() == []


def test_an_idle_connection_that_speaks_unasked_is_cut() -> None:
    upstreams = Upstreams()
    pool = Pool(upstreams)
    _, end = used(pool, upstreams)

    end.send(RESPONSE)

    assert end.is_aborted()
    assert pool.take("127.0.0.1", 80) is None


def test_an_idle_connection_is_dropped_after_its_time() -> None:
    upstreams = Upstreams()
    pool = Pool(upstreams, idle_seconds=90)
    _, end = used(pool, upstreams)

    upstreams.advance(89)
    assert not end.is_closed()
    upstreams.advance(2)
    assert end.is_closed()
    assert pool.take("127.0.0.1", 80) is None


def test_only_so_many_idle_connections_are_kept_and_the_oldest_goes() -> None:
    upstreams = Upstreams()
    pool = Pool(upstreams, max_idle=2)
    pairs = [connected(pool, upstreams) for _ in range(3)]
    for connection, _ in pairs:
        connection.send(REQUEST, b"GET", Silent())
    for _, end in pairs:
        end.send(RESPONSE)

    assert [end.is_closed() for _, end in pairs] == [True, False, False]
    assert pool.take("127.0.0.1", 80) is pairs[2][0]


def test_a_crowd_of_clients_finds_its_connections_again() -> None:
    upstreams = Upstreams()
    pool = Pool(upstreams)
    pairs = [connected(pool, upstreams) for _ in range(64)]
    for connection, _ in pairs:
        connection.send(REQUEST, b"GET", Silent())
    for _, end in pairs:
        end.send(RESPONSE)

    assert not any(end.is_closed() for _, end in pairs)


def test_a_stopped_server_is_forgotten_and_others_are_not() -> None:
    upstreams = Upstreams()
    pool = Pool(upstreams)
    _, stopped = used(pool, upstreams, port=80)
    _, other = used(pool, upstreams, port=81)

    pool.forget("127.0.0.1", 80)
    pool.forget("127.0.0.1", 80)

    assert (stopped.is_closed(), other.is_closed()) == (True, False)
    assert pool.take("127.0.0.1", 80) is None


def test_a_closed_pool_keeps_nothing() -> None:
    upstreams = Upstreams()
    pool = Pool(upstreams)
    _, idle = used(pool, upstreams)
    connection, busy = connected(pool, upstreams)
    connection.send(REQUEST, b"GET", Silent())

    pool.close()
    assert (idle.is_closed(), busy.is_closed()) == (True, False)

    busy.send(RESPONSE)
    assert busy.is_closed()
    upstreams.advance(0)
    assert upstreams.getDelayedCalls() == []


def test_a_pool_with_other_ways_is_made_once() -> None:
    upstreams = Upstreams()
    pool = Pool(upstreams, connect_timeout=30, idle_seconds=90)
    security = Security(handshake_timeout=5)

    other = pool.like(connect_timeout=7, idle_seconds=8, security=None)
    secure = pool.like(connect_timeout=30, idle_seconds=90, security=security)

    assert pool.like(connect_timeout=30.0, idle_seconds=90.0, security=None) is pool
    assert pool.like(connect_timeout=7, idle_seconds=8, security=None) is other
    same = Security(handshake_timeout=5)
    assert pool.like(connect_timeout=30, idle_seconds=90, security=same) is secure
    assert len({id(one) for one in (pool, other, secure)}) == 3


def test_a_pool_with_other_ways_goes_them() -> None:
    upstreams = Upstreams()
    pool = Pool(upstreams).like(connect_timeout=7, idle_seconds=8, security=None)
    _, end = used(pool, upstreams)
    assert upstreams.tcpClients[0][3] == 7

    upstreams.advance(7)
    assert not end.is_closed()
    upstreams.advance(2)
    assert end.is_closed()


def test_pools_with_other_ways_forget_and_close_with_the_first() -> None:
    upstreams = Upstreams()
    pool = Pool(upstreams)
    other = pool.like(connect_timeout=7, idle_seconds=8, security=None)
    _, stopped = used(other, upstreams, port=80)
    _, kept = used(other, upstreams, port=81)

    pool.forget("127.0.0.1", 80)
    assert (stopped.is_closed(), kept.is_closed()) == (True, False)
    pool.close()
    assert kept.is_closed()

    for late in (other, pool.like(connect_timeout=1, idle_seconds=1, security=None)):
        _, end = used(late, upstreams)
        assert end.is_closed()
