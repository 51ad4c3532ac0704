"""One exchange handed to a peer."""

from __future__ import annotations

import gzip

import pytest
from twisted.internet.error import ConnectionRefusedError as Refused
from typing_extensions import override

from llamaswap.config.model import PeerConfig, Timeouts
from llamaswap.http1.body import Body
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.heads import RequestHead
from llamaswap.http1.relay import Ended, Outcome
from llamaswap.proxying.local import NO_LIMIT
from llamaswap.proxying.peer import PeerUpstream, peer_fields
from support.http1_house import Listener
from support.http1_wires import End, Upstreams
from support.proxying_house import House

ASKED = b"POST /v1/chat?q=1 HTTP/1.1\r\nHost: us\r\nAuthorization: Bearer mine\r\nContent-Length: 2\r\n\r\n{}"
ANSWER = b"HTTP/1.1 200 OK\r\nDate: d\r\nContent-Type: text/event-stream\r\nContent-Length: 2\r\n\r\nok"


class Peered(House):
    """A house that hands everything to one peer."""

    def __init__(self, proxy: str = "http://10.0.0.1:81/base/", **peer: object) -> None:
        upstreams = Upstreams()
        self.peer = PeerConfig(id="p", proxy=proxy, **peer)  # type: ignore[arg-type]  # a test's keywords
        self.peers = PeerUpstream(upstreams, {"p": self.peer})
        self.seen = Listener()
        self.metered = False
        super().__init__(self._to_peer, upstreams)

    @override
    def ask(self, request: bytes = ASKED) -> None:
        super().ask(request)

    async def _to_peer(self, exchange: Exchange, body: Body) -> Outcome:
        return await self.peers.forward(
            exchange, self.peer, exchange.head.target, body, observer=self.seen, metered=self.metered
        )


def fields(headers: list[tuple[bytes, bytes]], api_key: str = "") -> list[tuple[bytes, bytes]]:
    head = RequestHead(b"POST", b"/", (1, 1), tuple(headers))
    return peer_fields(head, "box:81", api_key, metered=False)


def test_a_request_goes_to_the_peers_own_path_and_host() -> None:
    house = Peered(api_key="sk-peer")
    house.ask()

    assert house.upstreams.tcpClients[0][:2] == ("10.0.0.1", 81)
    assert house.upstreams.accept().take() == (
        b"POST /base/v1/chat?q=1 HTTP/1.1\r\nHost: 10.0.0.1:81\r\n"
        b"Authorization: Bearer sk-peer\r\nX-Api-Key: sk-peer\r\nContent-Length: 2\r\n\r\n{}"
    )


def test_the_query_of_a_peers_url_goes_with_each_request() -> None:
    """As `api-version`, without which some services answer nobody."""
    house = Peered("http://10.0.0.1:81/base?api-version=1")
    house.ask()

    assert house.upstreams.accept().take().startswith(b"POST /base/v1/chat?api-version=1&q=1 HTTP/1.1\r\n")


def test_requests_that_are_alike_get_each_peers_own_host_and_key() -> None:
    upstreams = Upstreams()
    peers = [
        PeerConfig(id=name, proxy=f"http://10.0.0.1:81/{name}", api_key=f"sk-{name}", timeouts=Timeouts())
        for name in ("a", "b")
    ]
    way = PeerUpstream(upstreams, {peer.id: peer for peer in peers})
    order = [peers[number] for number in (0, 0, 1, 0, 1)]

    async def forward(exchange: Exchange, body: Body) -> Outcome:
        return await way.forward(exchange, order[len(house.outcomes)], b"/x", body)

    house = House(forward, upstreams)
    seen = []
    ends: dict[str, End] = {}
    for peer in order:
        house.ask(ASKED)
        end = ends[peer.id] = ends.get(peer.id) or upstreams.accept()
        seen.append(end.take())
        end.send(ANSWER)

    assert [b"POST /b/x " in text and b"Bearer sk-b\r\n" in text for text in seen] == [
        peer.id == "b" for peer in order
    ]
    assert [b"POST /a/x " in text and b"Bearer sk-a\r\n" in text for text in seen] == [
        peer.id == "a" for peer in order
    ]


def test_an_answer_comes_back_and_an_event_stream_is_not_to_be_held_back() -> None:
    house = Peered()
    house.ask()
    house.upstreams.accept().send(ANSWER)

    answer = house.client.take()
    assert answer.endswith(b"\r\n\r\nok")
    assert b"\r\nX-Accel-Buffering: no\r\n" in answer
    assert house.outcomes[0].ended is Ended.COMPLETE
    assert (house.seen.statuses, house.seen.body) == ([200], b"ok")


def test_a_metered_call_asks_a_peer_only_for_codings_that_can_be_read() -> None:
    house = Peered()
    house.metered = True
    house.ask(ASKED.replace(b"Content-Length", b"Accept-Encoding: br, gzip\r\nContent-Length"))

    assert b"\r\nAccept-Encoding: gzip\r\n" in house.upstreams.accept().take()


def test_a_peers_coding_is_undone_for_a_client_that_did_not_ask_for_it() -> None:
    house = Peered()
    house.ask()
    packed = gzip.compress(b"hello")

    house.upstreams.accept().send(
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b" % (len(packed), packed)
    )

    assert house.client.take().endswith(b"\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    assert house.seen.body == packed


def test_nothing_tells_a_peer_where_a_request_comes_from() -> None:
    headers = [
        (b"Host", b"us"),
        (b"X-Forwarded-For", b"1.2.3.4"),
        (b"x-forwarded-host", b"outside"),
        (b"X-Forwarded-Proto", b"https"),
        (b"X-Forwarded-Port", b"443"),
        (b"Forwarded", b"for=1.2.3.4"),
        (b"X-LlamaSwap-Priority", b"batch"),
        (b"X-Forwarded", b"no word of ours"),
    ]
    assert fields(headers) == [(b"Host", b"box:81"), *headers[-2:]]


def test_a_peers_key_replaces_the_clients_credentials() -> None:
    headers = [
        (b"authorization", b"Bearer mine"),
        (b"x-api-key", b"mine"),
        (b"X-Api-Key", b"too"),
        (b"A", b"1"),
    ]
    assert fields(headers, "sk-1") == [
        (b"Host", b"box:81"),
        (b"A", b"1"),
        (b"Authorization", b"Bearer sk-1"),
        (b"X-Api-Key", b"sk-1"),
    ]
    assert fields(headers) == [(b"Host", b"box:81"), *headers]


def test_a_wish_for_an_upgrade_is_passed_on() -> None:
    headers = [(b"Connection", b"Upgrade"), (b"Upgrade", b"websocket")]
    assert fields(headers) == [(b"Host", b"box:81"), *headers]


def test_a_peer_that_refuses_connections_is_a_bad_gateway() -> None:
    house = Peered()
    house.ask()
    house.upstreams.refuse(Refused())

    (refusal,) = house.refusals
    assert refusal.status == 502
    assert refusal.message.startswith("peer proxy error: cannot connect to 10.0.0.1:81: ")


def test_a_peer_that_does_not_answer_in_time_is_a_bad_gateway() -> None:
    house = Peered(timeouts=Timeouts(response_header=60))
    house.ask()
    house.upstreams.accept()

    house.upstreams.advance(59)
    assert not house.refusals
    house.upstreams.advance(2)

    (refusal,) = house.refusals
    assert refusal.message.startswith("peer proxy error: timed out")


@pytest.mark.parametrize(("connect", "limit"), [(7, 7.0), (0, NO_LIMIT)])
def test_a_peer_has_its_own_time_to_connect(connect: int, limit: float) -> None:
    house = Peered(timeouts=Timeouts(connect=connect))
    house.ask()
    assert house.upstreams.tcpClients[0][3] == limit


def test_a_connection_is_used_again_for_its_own_time() -> None:
    house = Peered(timeouts=Timeouts(idle_conn=5))
    house.ask()
    peer = house.upstreams.accept()
    peer.send(ANSWER)

    house.upstreams.advance(4)
    house.ask()
    assert house.upstreams.attempts == 0
    peer.send(ANSWER)
    assert [outcome.ended for outcome in house.outcomes] == [Ended.COMPLETE] * 2

    house.upstreams.advance(6)
    assert peer.is_closed()


def test_closing_drops_idle_connections() -> None:
    house = Peered()
    house.ask()
    peer = house.upstreams.accept()
    peer.send(ANSWER)
    assert not peer.is_closed()

    house.peers.close()

    assert peer.is_closed()


@pytest.mark.parametrize("proxy", ["", "box:81", "ftp://box"])
def test_a_peer_without_a_usable_url_is_a_bad_gateway(proxy: str) -> None:
    house = Peered(proxy)
    house.peers.close()
    house.ask()

    (refusal,) = house.refusals
    assert refusal.message.startswith("peer proxy error: proxy ")


@pytest.mark.parametrize("key", ["sk-peer\n", "sk\r\nX-Admin: 1", "sk\0"])
def test_a_peer_whose_key_can_stand_in_no_field_is_a_bad_gateway(key: str) -> None:
    house = Peered(api_key=key)
    house.ask()

    (refusal,) = house.refusals
    assert refusal.message == "peer proxy error: the apiKey of peer p holds a line end"
    assert house.upstreams.tcpClients == []


def test_a_client_that_leaves_takes_its_request_along() -> None:
    house = Peered()
    house.ask()
    peer = house.upstreams.accept()

    house.client.leave()

    assert peer.is_aborted()
    assert not house.refusals
