"""Responses in a coding that their client did not ask for, relayed."""

from __future__ import annotations

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.http1.hosting import Limits
from llamaswap.http1.relay import Ended
from support.http1_house import GET, OLD, House, Listener
from support.http1_wires import split

HELLO = b"hello " * 40
PACKED = gzip.compress(HELLO)
HEAD = b"HTTP/1.1 200 OK\r\nDate: d\r\n"
SIZED = HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(PACKED) + PACKED
CHUNKED = (
    HEAD
    + b"Transfer-Encoding: chunked\r\nTrailer: T\r\nContent-Encoding: gzip\r\n\r\n"
    + b"1\r\n%b\r\n%x\r\n%b\r\n0\r\nT: u\r\n\r\n" % (PACKED[:1], len(PACKED) - 1, PACKED[1:])
)
BOMB_BYTES = 40 << 20
BOMB = gzip.compress(bytes(BOMB_BYTES), 9)
HIGH_WATER = 1 << 20


def bare(answer: bytes) -> tuple[bytes, bytes]:
    """The head of a chunked answer, and what is in its chunks, up to a proper end."""
    head, _, body = answer.partition(b"\r\n\r\n")
    found = b""
    while True:
        size, _, body = body.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            assert body == b"\r\n"
            return head, found
        found += body[:length]
        assert body[length : length + 2] == b"\r\n"
        body = body[length + 2 :]


@given(st.sampled_from([SIZED, CHUNKED]), st.lists(st.integers(0, 400), max_size=10))
def test_a_client_that_asked_for_no_coding_gets_none(answer: bytes, cuts: list[int]) -> None:
    house = House(observer=(listener := Listener()))
    upstream = house.upstreams.accept()

    upstream.send(*split(answer, cuts))

    head, body = bare(house.client.take())
    assert head == HEAD + b"Transfer-Encoding: chunked"
    assert body == HELLO
    assert listener.body == PACKED
    assert (house.ended(), house.outcomes[0].body_bytes) == ([Ended.COMPLETE], len(PACKED))
    assert house.exchanges[0].body_bytes == len(HELLO)
    assert not house.client.is_closed() and not upstream.is_closed()


@pytest.mark.parametrize("answer", [SIZED, CHUNKED])
def test_an_old_client_gets_it_bare_until_the_connection_ends(answer: bytes) -> None:
    house = House(OLD)

    house.upstreams.accept().send(answer)

    assert house.client.take() == HEAD + b"Connection: close\r\n\r\n" + HELLO
    assert house.client.is_closed() and not house.client.is_aborted()


def test_a_body_that_ends_by_closing_is_unpacked_too() -> None:
    house = House()
    upstream = house.upstreams.accept()
    upstream.send(HEAD + b"Content-Encoding: deflate\r\n\r\n" + zlib.compress(HELLO))

    upstream.leave()

    assert bare(house.client.take())[1] == HELLO
    assert house.ended() == [Ended.COMPLETE]


@pytest.mark.parametrize("accepted", [b"gzip", b"br;q=1, x-gzip;q=0.2", b"*"])
def test_a_client_that_takes_the_coding_gets_it_byte_for_byte(accepted: bytes) -> None:
    house = House(GET[:-2] + b"Accept-Encoding: %b\r\n\r\n" % accepted)

    house.upstreams.accept().send(SIZED)

    assert house.client.take() == SIZED


def test_an_answer_to_head_says_what_the_upstream_said() -> None:
    house = House(GET.replace(b"GET", b"HEAD"))
    head = SIZED.partition(b"\r\n\r\n")[0] + b"\r\n\r\n"

    house.upstreams.accept().send(head)

    assert house.client.take() == head
    assert house.ended() == [Ended.COMPLETE]


def test_what_was_unpacked_is_sent_before_the_rest_comes() -> None:
    packer = zlib.compressobj(wbits=31)
    house = House()
    upstream = house.upstreams.accept()
    upstream.send(HEAD + b"Content-Encoding: gzip\r\n\r\n")
    assert house.client.take().endswith(b"chunked\r\n\r\n")

    upstream.send(packer.compress(b"data: 1\n\n") + packer.flush(zlib.Z_SYNC_FLUSH))

    assert house.client.take() == b"9\r\ndata: 1\n\n\r\n"


@pytest.mark.parametrize("end", [1, 5, len(PACKED) // 2, len(PACKED) - 1])
def test_a_coding_that_breaks_off_cuts_the_client(end: int) -> None:
    house = House()
    upstream = house.upstreams.accept()
    upstream.send(HEAD + b"Content-Encoding: gzip\r\n\r\n" + PACKED[:end])

    upstream.leave()

    assert house.client.is_aborted()
    assert not house.client.take().endswith(b"0\r\n\r\n")
    assert house.ended() == [Ended.UPSTREAM_DIED]


def test_a_damaged_coding_cuts_both_sides() -> None:
    house = House()
    upstream = house.upstreams.accept()

    upstream.send(HEAD + b"Content-Encoding: gzip\r\nContent-Length: 900\r\n\r\n" + PACKED[:20] + bytes(99))

    assert house.client.is_aborted() and upstream.is_aborted()
    assert house.ended() == [Ended.UPSTREAM_DIED]
    assert house.ends == []


class Bombed(House):
    """A house whose upstream answers with very much in very little."""

    def __init__(self, *, drain: bool = False) -> None:
        super().__init__(high_water=HIGH_WATER, drain=drain)
        self.upstream = self.upstreams.accept()
        self.upstream.send(HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB))

    def is_modest(self) -> bool:
        """Whether no more waits for the client than may."""
        return self.exchanges[0].buffered < HIGH_WATER + 2 * 65536


def test_a_bomb_is_unpacked_no_faster_than_its_client_takes_it() -> None:
    house = Bombed()
    house.client.take()
    house.client.stall()

    house.upstream.send(BOMB[:30_000])
    assert house.upstream.is_paused()
    assert house.is_modest()
    assert house.outcomes == []

    house.client.go_on()
    assert not house.upstream.is_paused()
    house.upstream.send(BOMB[30_000:])

    assert house.client.take().endswith(b"\r\n0\r\n\r\n")
    assert house.exchanges[0].body_bytes == BOMB_BYTES
    assert house.ended() == [Ended.COMPLETE]


def test_an_upstream_that_is_done_is_let_go_while_its_answer_is_still_packed() -> None:
    house = Bombed()
    house.client.take()
    house.client.stall()

    house.upstream.send(BOMB)

    assert house.ended() == [Ended.COMPLETE]
    assert house.is_modest()
    assert not house.exchanges[0].finished
    house.client.send(GET)
    assert len(house.exchanges) == 1

    house.client.go_on()

    assert house.client.take().endswith(b"\r\n0\r\n\r\n")
    assert house.exchanges[0].body_bytes == BOMB_BYTES
    assert len(house.exchanges) == 2


@pytest.mark.parametrize("step", [30_000, len(BOMB)])
def test_a_client_that_sips_gets_all_of_it_and_little_is_ever_waiting(step: int) -> None:
    house = Bombed()
    house.client.take()
    house.client.stall()
    at, got = 0, 0

    for _ in range(200):
        if not house.upstream.is_paused() and at < len(BOMB):
            house.upstream.send(BOMB[at : at + step])
            at += step
        assert house.is_modest()
        house.upstreams.advance(100)
        got += len(house.client.sip(500_000))

    assert got > BOMB_BYTES
    assert house.exchanges[0].finished
    assert house.exchanges[0].body_bytes == BOMB_BYTES
    assert not house.client.is_closed()


def test_a_client_that_takes_nothing_of_what_is_still_packed_is_cut_in_the_end() -> None:
    house = Bombed()
    house.client.stall()
    house.upstream.send(BOMB)

    house.upstreams.advance(Limits().idle_seconds - 1)
    assert not house.client.is_closed()
    house.upstreams.advance(2)

    assert house.client.is_aborted()
    assert house.exchanges[0].gone


def test_damage_that_shows_late_still_cuts_the_client() -> None:
    house = Bombed()
    house.client.stall()
    house.upstream.send(BOMB[:-8] + bytes(8))
    assert house.ended() == [Ended.COMPLETE]

    house.client.go_on()

    assert house.client.is_aborted()
    assert not house.client.take().endswith(b"0\r\n\r\n")


def test_damage_that_shows_while_the_upstream_is_held_back_cuts_both() -> None:
    house = Bombed()
    house.client.stall()
    house.upstream.send(BOMB[:30_000] + bytes(99))
    assert house.upstream.is_paused() and house.outcomes == []

    house.client.go_on()

    assert house.client.is_aborted() and house.upstream.is_aborted()
    assert house.ended() == [Ended.UPSTREAM_DIED]


def test_a_client_that_leaves_ends_the_unpacking() -> None:
    house = Bombed()
    house.client.stall()
    house.upstream.send(BOMB[:30_000])
    sent = house.exchanges[0].body_bytes

    house.client.leave()

    assert house.upstream.is_aborted()
    assert house.ended() == [Ended.CLIENT_LEFT]
    assert house.exchanges[0].body_bytes == sent


def test_nothing_is_unpacked_for_nobody_while_an_upstream_runs_out() -> None:
    house = Bombed(drain=True)
    house.client.stall()
    house.upstream.send(BOMB[:30_000])
    house.client.leave()
    sent = house.exchanges[0].body_bytes

    house.upstream.send(BOMB[30_000:])

    assert house.ended() == [Ended.CLIENT_LEFT]
    assert house.exchanges[0].body_bytes == sent
