"""Upgraded connections."""

from __future__ import annotations

import pytest

from llamaswap.http1.client import Pool
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.heads import end_to_end, upgrade_headers
from llamaswap.http1.relay import Ended, Outcome, relay
from llamaswap.http1.tunnel import HIGH_WATER_BYTES
from llamaswap.http1.upstream import TAKING_SECONDS
from support.http1_wires import Clients, End, Upstreams, format_request

ASK = b"GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\nDate: d\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"


def upgrade(early: bytes = b"", *, drain: bool = False) -> tuple[End, End, list[Outcome]]:
    """A client and an upstream that talk through a tunnel."""
    upstreams = Upstreams()
    outcomes: list[Outcome] = []

    async def handler(exchange: Exchange) -> None:
        headers = exchange.head.headers
        request = format_request(b"GET", b"/ws", (*end_to_end(headers), *upgrade_headers(headers)))
        outcomes.append(
            await relay(exchange, Pool(upstreams), "127.0.0.1", 81, [request], method=b"GET", drain=drain)
        )

    client = Clients(handler, upstreams).connect()
    client.send(ASK + early)
    upstream = upstreams.accept()
    assert upstream.take() == ASK
    return client, upstream, outcomes


def test_after_the_switch_bytes_cross_both_ways_untouched() -> None:
    client, upstream, _ = upgrade()

    upstream.send(SWITCH + b"\x81\x00")
    assert client.take() == SWITCH + b"\x81\x00"
    client.send(b"\x81\x80GET / HTTP/1.1\r\n\r\n")
    assert upstream.take() == b"\x81\x80GET / HTTP/1.1\r\n\r\n"
    upstream.send(b"\0\r\n")
    assert client.take() == b"\0\r\n"


def test_what_the_client_sent_ahead_is_not_lost() -> None:
    _, upstream, _ = upgrade(early=b"early")

    upstream.send(SWITCH)

    assert upstream.take() == b"early"


def test_an_upstream_that_declines_is_an_ordinary_answer() -> None:
    client, upstream, outcomes = upgrade()

    upstream.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    assert client.take().startswith(b"HTTP/1.1 400 ")
    assert outcomes[0].ended is Ended.COMPLETE
    assert not client.is_closed()


def test_the_upstreams_end_is_the_clients_end() -> None:
    client, upstream, outcomes = upgrade()
    upstream.send(SWITCH)

    upstream.leave()

    assert client.is_closed() and not client.is_aborted()
    assert outcomes[0].ended is Ended.COMPLETE


@pytest.mark.parametrize("drain", [False, True])
def test_the_clients_end_is_the_upstreams_end_and_its_last_words_arrive(drain: bool) -> None:
    """Also where an answer would be drained: an upstream that waits for its client never ends by itself."""
    client, upstream, outcomes = upgrade(drain=drain)
    upstream.send(SWITCH)
    client.send(b"bye")

    client.leave()

    assert upstream.take() == b"bye"
    assert upstream.is_closed() and not upstream.is_aborted()
    assert outcomes[0].ended is Ended.CLIENT_LEFT


def test_an_upstream_that_switches_for_a_client_that_has_left_is_cut() -> None:
    client, upstream, outcomes = upgrade(drain=True)
    client.leave()
    assert not upstream.is_closed()

    upstream.send(SWITCH + b"hello")

    assert upstream.is_aborted()
    assert outcomes == []


def test_a_slow_upstream_holds_the_client_back() -> None:
    client, upstream, _ = upgrade()
    upstream.send(SWITCH)
    upstream.stall()

    client.send(bytes(HIGH_WATER_BYTES + 1))
    assert client.is_paused()
    upstream.go_on()

    assert not client.is_paused()
    assert len(upstream.take()) == HIGH_WATER_BYTES + 1


def test_an_upstream_that_takes_nothing_for_long_is_given_up_with_the_client_that_it_holds_back() -> None:
    client, upstream, outcomes = upgrade()
    upstream.send(SWITCH)
    upstream.stall()
    client.send(bytes(HIGH_WATER_BYTES + 1))

    clock = upstream.wire.clock
    clock.advance(TAKING_SECONDS - 1)
    upstream.sip(1)
    clock.advance(TAKING_SECONDS - 1)
    assert outcomes == []
    clock.advance(1)

    assert outcomes[0].ended is Ended.UPSTREAM_DIED
    assert client.is_aborted()
    assert upstream.is_aborted()


def test_an_upstream_that_has_caught_up_may_be_silent_for_as_long_as_it_likes() -> None:
    client, upstream, outcomes = upgrade()
    upstream.send(SWITCH)
    upstream.stall()
    client.send(bytes(HIGH_WATER_BYTES + 1))
    upstream.go_on()

    upstream.wire.clock.advance(10 * TAKING_SECONDS)

    assert outcomes == []
    assert not client.is_closed()
