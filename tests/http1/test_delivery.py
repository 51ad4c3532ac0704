"""One response on its way to one client, whoever sends it.

How it fares between two connections is in `test_relay` and `test_relay_unpacking`.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from functools import partial

import pytest
from twisted.internet.defer import Deferred

from llamaswap.http1.delivery import Delivery
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.framing import Framing
from llamaswap.http1.heads import ResponseHead
from llamaswap.http1.parsing import Malformed
from llamaswap.http1.stream import ResponseStream
from support.http1_wires import Clients

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
PACKED = (b"Content-Encoding", b"gzip")


def head(*headers: tuple[bytes, bytes], status: int = 200) -> ResponseHead:
    return ResponseHead(status, b"Fine", (1, 1), ((b"Date", b"d"), *headers))


class Door:
    """A client with its exchange, and a delivery to it."""

    def __init__(self, high_water: int = 100, *, begun: bool = False) -> None:
        self.exchanges: list[Exchange] = []
        self.client = Clients(self._handle).connect()
        self.client.send(GET)
        self.stream: ResponseStream | None = self.exchanges[0].stream(200) if begun else None
        into = (lambda: self.stream) if begun else None
        self.delivery = Delivery(self.exchanges[0], into, self._added, high_water)
        self.client.take()

    async def _handle(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        await Deferred()

    def _added(self, head: ResponseHead) -> Iterable[tuple[bytes, bytes]]:
        return ((b"X-Added", b"%d" % head.status),)


def test_a_head_waits_for_the_first_bytes_of_its_body() -> None:
    door = Door()
    door.delivery.begin(head((b"Content-Length", b"5")), Framing.LENGTH, more=True)
    assert door.client.take() == b""

    door.delivery.data(b"hello")

    assert door.client.take() == (
        b"HTTP/1.1 200 OK\r\nDate: d\r\nContent-Length: 5\r\nX-Added: 200\r\n\r\nhello"
    )


def test_a_head_without_a_body_at_hand_does_not_wait() -> None:
    door = Door()

    door.delivery.begin(head((b"Content-Length", b"5")), Framing.LENGTH, more=False)

    assert door.client.take().endswith(b"\r\n\r\n")


def test_a_packed_body_at_hand_that_yields_nothing_yet_lets_the_head_go() -> None:
    door = Door()
    door.delivery.begin(head(PACKED), Framing.CHUNKED, more=True)
    assert door.delivery.bare

    door.delivery.bare_data(gzip.compress(b"hello")[:5])

    assert door.client.take().endswith(b"Transfer-Encoding: chunked\r\nX-Added: 200\r\n\r\n")


@pytest.mark.parametrize("begun", [True, False])
def test_an_answer_under_way_is_unpacked_too(*, begun: bool) -> None:
    door = Door(begun=begun)
    door.delivery.begin(head(PACKED), Framing.CHUNKED, more=False)
    door.client.take()

    door.delivery.bare_data(gzip.compress(b"hello"))
    good = door.delivery.complete()
    door.delivery.finish()

    assert door.client.take() == b"5\r\nhello\r\n0\r\n\r\n"
    assert good and door.exchanges[0].finished
    assert door.exchanges[0].body_bytes == 5


@pytest.mark.parametrize("begun", [True, False])
def test_an_upgrade_that_nobody_asked_for_is_malformed(*, begun: bool) -> None:
    door = Door(begun=begun)

    with pytest.raises(Malformed):
        door.delivery.begin(head(status=101), Framing.UNTIL_CLOSE, more=False)

    assert door.client.take() == b""


def test_a_client_is_behind_when_much_waits_for_it() -> None:
    door = Door(high_water=100)
    door.delivery.begin(head(), Framing.UNTIL_CLOSE, more=False)
    door.client.stall()
    door.delivery.data(bytes(80))
    assert not door.delivery.behind

    door.delivery.data(bytes(80))

    assert door.delivery.behind


def test_a_client_is_behind_while_something_is_still_packed_for_it() -> None:
    door = Door(high_water=100)
    door.delivery.begin(head(PACKED), Framing.CHUNKED, more=False)
    door.client.take()
    door.client.stall()
    door.delivery.bare_data(gzip.compress(bytes(1 << 20)))
    lags = [door.delivery.behind]
    assert 100 < door.exchanges[0].buffered < 70_000

    for take in (partial(door.client.sip, 1000), door.client.go_on):
        take()
        door.delivery.catch_up()
        lags.append(door.delivery.behind)

    assert lags == [True, True, False]
    assert door.exchanges[0].body_bytes == 1 << 20


def test_nothing_is_written_to_a_client_that_has_left() -> None:
    door = Door()
    door.client.leave()

    door.delivery.begin(head(PACKED), Framing.CHUNKED, more=False)
    door.delivery.data(b"5\r\nhello\r\n")

    assert not door.delivery.bare
    assert door.delivery.complete()
    assert door.client.take() == b""


def test_cutting_leaves_nothing_that_looks_complete() -> None:
    door = Door()
    door.delivery.begin(head(PACKED), Framing.CHUNKED, more=False)
    door.delivery.bare_data(gzip.compress(b"hello")[:-1])

    assert not door.delivery.complete()

    assert door.client.is_aborted()
    assert not door.client.take().endswith(b"0\r\n\r\n")


def test_the_exchanges_own_fields_take_the_place_of_the_upstreams() -> None:
    theirs, ours = Door(), Door()
    answer = head((b"x-why", b"7"), (b"Content-Length", b"0"))
    ours.exchanges[0].own_names = frozenset({b"x-why"})
    ours.exchanges[0].own_lines = b"X-Why: 1\r\n"

    for door in (theirs, ours):
        door.delivery.begin(answer, Framing.LENGTH, more=False)

    assert b"\r\nx-why: 7\r\n" in theirs.client.take()
    told = ours.client.take()
    assert b"\r\nX-Why: 1\r\n" in told and b"x-why" not in told


def test_whether_a_response_is_under_way_is_asked_when_the_head_has_come() -> None:
    door = Door()
    begun: list[ResponseStream] = []
    delivery = Delivery(door.exchanges[0], lambda: begun[0], None, 100)
    begun.append(door.exchanges[0].stream(200))
    door.client.take()

    delivery.begin(head((b"Content-Length", b"5")), Framing.LENGTH, more=True)
    delivery.bare_data(b"hello")
    delivery.complete()
    delivery.finish()

    assert door.client.take() == b"5\r\nhello\r\n0\r\n\r\n"


def test_a_response_that_began_before_a_failure_keeps_its_count() -> None:
    door = Door()
    stream = door.exchanges[0].stream(200)
    delivery = Delivery(door.exchanges[0], lambda: stream, None, 100)
    stream.write(b"wait")

    delivery.count(0)

    assert door.exchanges[0].body_bytes == 4
