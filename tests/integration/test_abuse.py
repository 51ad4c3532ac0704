"""Requests made to do harm: each gets a clear status, costs little, and disturbs nobody else's connection."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.real_daemon import Daemon, events, started, stub_config
from support.real_daemon_talk import Answer, Wire, ask, chat_body, json_fields, request_bytes, until
from support.real_sizes import MIB, forget_peak, peak

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"
MOST_GROWTH = 96 * MIB  # of memory, whatever comes; the largest bodies below have 10 MB


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("abuse")


@pytest.fixture(scope="module")
def shared(folder: Path) -> Iterator[Daemon]:
    with started(folder, stub_config(folder)) as daemon:
        assert daemon.chat("a").status == 200
        yield daemon


@pytest.fixture
def daemon(shared: Daemon) -> Iterator[Daemon]:
    """The daemon; when a test is done with it, another client notices nothing and no memory is lost."""
    before = forget_peak(shared.pid)
    yield shared
    began = time.monotonic()
    assert shared.chat("a").status == 200
    assert time.monotonic() - began < 2.0
    assert peak(shared.pid) - before < MOST_GROWTH


def status_line(wire: Wire) -> bytes:
    return wire.read_to_end().partition(b"\r\n")[0]


def raw(*lines: bytes, body: bytes = b"") -> bytes:
    return b"\r\n".join((*lines, b"", b"")) + body


POST = b"POST /v1/chat/completions HTTP/1.1"
HOST = b"Host: h"
HIDDEN = b"GET /unload HTTP/1.1\r\nHost: h\r\n\r\n"
CHUNKED = b"Transfer-Encoding: chunked"
END = b"0\r\n\r\n"

SMUGGLING = {
    "chunks and a length": raw(POST, HOST, CHUNKED, b"Content-Length: 5", body=END + HIDDEN),
    "a length and chunks": raw(POST, HOST, b"Content-Length: 5", CHUNKED, body=END + HIDDEN),
    "two lengths": raw(POST, HOST, b"Content-Length: 0", b"Content-Length: 37", body=HIDDEN),
    "a list of lengths": raw(POST, HOST, b"Content-Length: 0, 37", body=HIDDEN),
    "a length with a sign": raw(POST, HOST, b"Content-Length: +37", body=HIDDEN),
    "a length in hexadecimal": raw(POST, HOST, b"Content-Length: 0x25", body=HIDDEN),
    "a length with a blank inside": raw(POST, HOST, b"Content-Length: 3 7", body=HIDDEN),
    "a blank before the colon": raw(POST, HOST, b"Transfer-Encoding : chunked", body=END + HIDDEN),
    "a tab before the colon": raw(POST, HOST, b"Content-Length\t: 37", body=HIDDEN),
    "a folded field": raw(POST, HOST, b"X: 1", b" Content-Length: 37", body=HIDDEN),
    "a field without a colon": raw(POST, HOST, b"Transfer-Encoding chunked", body=END + HIDDEN),
    "an encoding twice": raw(POST, HOST, CHUNKED, CHUNKED, body=END + HIDDEN),
    "an encoding that is none": raw(POST, HOST, b"Transfer-Encoding: xchunked", body=END + HIDDEN),
    "an encoding before chunked": raw(POST, HOST, b"Transfer-Encoding: gzip, chunked", body=END + HIDDEN),
    "chunked that is not last": raw(POST, HOST, b"Transfer-Encoding: chunked, identity", body=END + HIDDEN),
    "chunked in quotes": raw(POST, HOST, b'Transfer-Encoding: "chunked"', body=END + HIDDEN),
    "chunked behind a control character": raw(
        POST, HOST, b"Transfer-Encoding: \x0bchunked", body=END + HIDDEN
    ),
    "a carriage return alone in a field": raw(POST, HOST, b"X: 1\rContent-Length: 37", body=HIDDEN),
    "a NUL in a field": raw(POST, HOST, b"X: 1\x00", body=HIDDEN),
    "a blank line within the request line": raw(b"POST /v1 /chat HTTP/1.1", HOST, body=HIDDEN),
    "a line end in the target": raw(b"GET /a\rb HTTP/1.1", HOST, body=HIDDEN),
    "a version of its own": raw(b"GET /health HTTP/1.9x", HOST, body=HIDDEN),
    "the version of two": raw(b"GET /health HTTP/2.0", HOST, body=HIDDEN),
    "the preface of two": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no host": raw(b"GET /health HTTP/1.1", body=HIDDEN),
    "two hosts": raw(b"GET /health HTTP/1.1", HOST, b"Host: other", body=HIDDEN),
    "chunks of an old version": raw(b"POST /v1/chat/completions HTTP/1.0", HOST, CHUNKED, body=END + HIDDEN),
    "a chunk size with a sign": raw(POST, HOST, CHUNKED, body=b"+5\r\nhello\r\n" + END + HIDDEN),
    "a chunk size in hexadecimal notation": raw(POST, HOST, CHUNKED, body=b"0x5\r\nhello\r\n" + END + HIDDEN),
    "a chunk size beyond all bounds": raw(POST, HOST, CHUNKED, body=b"f" * 20 + b"\r\nx" + HIDDEN),
    "a chunk that is longer than it says": raw(POST, HOST, CHUNKED, body=b"3\r\nhello\r\n" + END + HIDDEN),
    "a chunk with a bare line end": raw(POST, HOST, CHUNKED, body=b"5\nhello\r\n" + END + HIDDEN),
    "an end of chunks with a bare line end": raw(POST, HOST, CHUNKED, body=b"0\n\n" + HIDDEN),
    "a bad trailer": raw(POST, HOST, CHUNKED, body=b"0\r\nno colon\r\n\r\n" + HIDDEN),
}


@pytest.mark.parametrize("words", SMUGGLING.values(), ids=SMUGGLING)
def test_what_could_be_read_in_two_ways_is_refused_and_nothing_behind_it_is_heard(
    words: bytes, daemon: Daemon
) -> None:
    with Wire(daemon.port) as wire:
        wire.send(words)
        answer = wire.read_to_end()

    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 ", b"HTTP/1.1 505 ")), answer
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"Connection: close\r\n" in answer
    assert daemon.running() == {"a": "ready"}, "what was hidden behind it would have unloaded the model"


def test_a_field_that_connection_lists_cannot_take_the_length_away(daemon: Daemon, folder: Path) -> None:
    fields = {**json_fields(), "Connection": "close, Content-Length, X-Stub", "X-Tag": "listed"}

    told = ask(daemon.port, "POST", CHAT, chat_body("a"), fields).json

    assert told["size"] == len(chat_body("a"))
    assert "x-stub" not in told["headers"]
    assert len([note for note in events(folder, "arrived") if note["tag"] == "listed"]) == 1


# Floods


def test_a_flood_of_fields_is_431(daemon: Daemon) -> None:
    fields = b"".join(b"X-%d: y\r\n" % number for number in range(20_000))
    with Wire(daemon.port) as wire:
        wire.send(b"GET /health HTTP/1.1\r\nHost: h\r\n" + fields + b"\r\n")
        assert status_line(wire).startswith(b"HTTP/1.1 431 ")


def send_on(wire: Wire) -> None:
    """Send up to 128 MiB, unless the other end closes."""
    for _ in range(2000):
        wire.send(b"y" * 65536)
        time.sleep(0.001)


def test_a_head_that_never_ends_is_cut_where_heads_end(daemon: Daemon) -> None:
    with Wire(daemon.port) as wire:
        wire.send(b"GET /health HTTP/1.1\r\nHost: h\r\nX: ")
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            send_on(wire)


def test_a_target_of_a_megabyte_is_refused(daemon: Daemon) -> None:
    with Wire(daemon.port) as wire:
        wire.send(b"GET /" + b"a" * MIB + b" HTTP/1.1\r\nHost: h\r\n\r\n")
        assert status_line(wire).startswith((b"HTTP/1.1 414 ", b"HTTP/1.1 431 "))


def test_ten_thousand_pipelined_requests_are_answered_one_after_the_other(daemon: Daemon) -> None:
    requests = request_bytes("GET", "/health") * 9_999
    last = request_bytes("GET", "/health", headers={"Connection": "close"})
    with Wire(daemon.port) as wire, ThreadPoolExecutor(1) as pool:
        sending = pool.submit(wire.send, requests + last)
        assert daemon.chat("a").status == 200
        answers = wire.read_to_end()
        sending.result(10)

    assert answers.count(b"HTTP/1.1 200 OK\r\n") == answers.count(b"\r\n\r\nOK") == 10_000


def test_two_hundred_connections_that_say_nothing_keep_nobody_out(daemon: Daemon) -> None:
    silent = [Wire(daemon.port) for _ in range(200)]
    try:
        for wire in silent:
            wire.send(b"POST /v1/ch")
        assert daemon.chat("a").status == 200
    finally:
        for wire in silent:
            wire.abort()
    until(lambda: daemon.sockets() < 50, "their sockets to be free")


# Bodies


def test_a_body_that_ends_early_is_no_request_and_reaches_nobody(daemon: Daemon, folder: Path) -> None:
    rows, arrived = len(daemon.rows()), len(events(folder, "arrived"))
    whole = request_bytes("POST", CHAT, chat_body("a"), json_fields())
    for words in (whole[:-1], whole[: whole.index(b"\r\n\r\n") + 4]):
        with Wire(daemon.port) as wire:
            wire.send(words)
            wire.close()
    chunked = request_bytes("POST", CHAT, headers={**json_fields(), "Transfer-Encoding": "chunked"})
    with Wire(daemon.port) as wire:
        wire.send(chunked + b"20\r\n" + chat_body("a")[:10])
        wire.close()

    assert daemon.get("/health").status == 200
    assert (len(daemon.rows()), len(events(folder, "arrived"))) == (rows, arrived)


def test_case_077_a_body_that_trickles_in_holds_no_box_and_is_served_when_it_is_there(daemon: Daemon) -> None:
    request = request_bytes("POST", CHAT, chat_body("a"), json_fields(tag="trickle"))
    with Wire(daemon.port) as wire:
        for at in range(0, len(request), 16):
            wire.send(request[at : at + 16])
            time.sleep(0.02)
            if at == 160:
                assert daemon.chat("b").status == 200
        assert wire.read_until(b"\r\n").startswith(b"HTTP/1.1 200 ")
    assert daemon.chat("a").status == 200


@pytest.mark.parametrize("size", [2 << 30, 1 << 50, 10**18], ids=["2 GiB", "1 PiB", "10^18"])
def test_a_body_that_is_announced_beyond_the_limit_is_413_before_it_comes(size: int, daemon: Daemon) -> None:
    fields = {**json_fields(), "Content-Length": str(size)}
    with Wire(daemon.port) as wire:
        began = time.monotonic()
        wire.send(request_bytes("POST", CHAT, headers=fields) + b'{"model":"a",')
        answer = wire.read_to_end()

    assert answer.startswith(b"HTTP/1.1 413 "), answer
    assert time.monotonic() - began < 3.0


def test_who_asks_before_sending_too_much_is_not_told_to_go_on(daemon: Daemon) -> None:
    fields = {**json_fields(), "Content-Length": str(2 << 30), "Expect": "100-continue"}
    with Wire(daemon.port) as wire:
        wire.send(request_bytes("POST", CHAT, headers=fields))
        assert status_line(wire).startswith(b"HTTP/1.1 413 ")


def test_a_length_with_more_digits_than_any_body_has_bytes_is_refused(daemon: Daemon) -> None:
    with Wire(daemon.port) as wire:
        wire.send(request_bytes("POST", CHAT, headers={"Content-Length": "9" * 5000}))
        assert status_line(wire).startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 "))


def test_a_trailer_flood_is_refused(daemon: Daemon) -> None:
    chunked = request_bytes("POST", CHAT, headers={**json_fields(), "Transfer-Encoding": "chunked"})
    with Wire(daemon.port) as wire:
        wire.send(chunked + b"0\r\n" + b"X-Trailer: y\r\n" * 10_000)
        assert status_line(wire).startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 "))


# Documents


def json_post(daemon: Daemon, body: bytes) -> tuple[Answer, float]:
    """Post a document; returns the answer and the seconds that another client's question took meanwhile."""
    with Wire(daemon.port) as wire:
        wire.send(request_bytes("POST", CHAT, body, {**json_fields(), "Connection": "close"}))
        began = time.monotonic()
        assert daemon.get("/health").status == 200
        waited = time.monotonic() - began
        head, _, rest = wire.read_to_end().partition(b"\r\n\r\n")
    return Answer(int(head.split()[1]), daemon.get("/health").headers, rest), waited


DEEP = 100_000

BOMBS = {
    "brackets, depth 100 000": b"[" * DEEP + b"]" * DEEP,
    "10 MB of brackets": b"[" * 10_000_000,
    "10 MB of braces": b'{"a":' * 2_000_000,
    "10 MB of quotes": b'{"a":' + b'"' * 10_000_000,
    "10 MB of backslashes": b'{"a":"' + b"\\" * 10_000_000,
    "a million keys that are no model": b"{" + b",".join(b'"k%d":1' % n for n in range(1_000_000)) + b"}",
    "a million and a half keys, and a model twice": b'{"model":"none","x":{"model":1},'
    + b",".join(b'"%x":1' % n for n in range(1_500_000))
    + b"}",
    "a model of 10 MB": b'{"model":"' + b"x" * 10_000_000 + b'"}',
    "a model that is a deep list": b'{"model":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "a number of 5 MB": b'{"model":' + b"9" * 5_000_000 + b"}",
    "bytes that are no text": b'{"model":"\xff\xfe' + b"\x80" * 1_000_000 + b'"}',
    "half a surrogate": b'{"model":"\\ud800"}',
}


@pytest.mark.parametrize("body", BOMBS.values(), ids=BOMBS)
def test_a_document_that_is_a_bomb_names_no_model_and_holds_nobody_up(body: bytes, daemon: Daemon) -> None:
    answer, waited = json_post(daemon, body)

    assert answer.status == 404
    assert len(answer.body) < 1000
    assert waited < 1.5


def test_a_model_behind_a_deep_document_is_found_or_refused_but_never_a_crash(daemon: Daemon) -> None:
    deep = b"[" * DEEP + b"]" * DEEP
    for body in (b'{"model":"a","x":' + deep + b"}", b'{"x":' + deep + b',"model":"a"}'):
        answer, waited = json_post(daemon, body)
        assert answer.status in (200, 400, 404)
        assert waited < 1.5


def test_a_thousand_times_the_same_key_is_the_first_one(daemon: Daemon) -> None:
    keys = b",".join(b'"model":"m%d"' % number for number in range(100_000))

    answer, waited = json_post(daemon, b'{"model":"a",' + keys + b"}")

    assert answer.status == 200
    assert waited < 1.5


# Forms

WRONG_FORMS = {
    "no boundary": (b"multipart/form-data", b"--x\r\n\r\n--x--"),
    "an empty boundary": (b"multipart/form-data; boundary=", b"--\r\n\r\n----"),
    "a boundary that never comes": (b"multipart/form-data; boundary=x", b"hello" * 1000),
    "an end that never comes": (
        b"multipart/form-data; boundary=x",
        b'--x\r\nContent-Disposition: form-data; name="other"\r\n\r\n',
    ),
    "a part without a head": (b"multipart/form-data; boundary=x", b"--x\r\n\r\na\r\n--x--\r\n"),
    "a head without an end": (b"multipart/form-data; boundary=x", b"--x\r\n" + b"X-Y: z\r\n" * 100_000),
    "a million parts": (b"multipart/form-data; boundary=x", b"--x\r\n\r\n\r\n" * 500_000 + b"--x--\r\n"),
    "a boundary of a megabyte of dashes": (b"multipart/form-data; boundary=-", b"-" * 5_000_000),
    "semicolons behind a quote": (b'multipart/form-data; x="' + b";" * 60_000 + b"; boundary=x", b"--x\r\n"),
    "semicolons behind a quote of a part": (
        b"multipart/form-data; boundary=x",
        b'--x\r\nContent-Disposition: form-data; x="' + b";" * 2_000_000 + b"\r\n\r\na\r\n--x--\r\n",
    ),
    "parts without anything": (b"multipart/form-data; boundary=x", b"--x\r\n" * 10_000_000),
    "millions of pairs": (b"application/x-www-form-urlencoded", b"a&" * 5_000_000),
    "a value of escapes": (b"application/x-www-form-urlencoded", b"model=" + b"%ff" * 3_000_000),
}


@pytest.mark.parametrize("form", WRONG_FORMS.values(), ids=WRONG_FORMS)
def test_a_form_that_is_wrong_names_no_model(form: tuple[bytes, bytes], daemon: Daemon) -> None:
    kind, body = form
    began = time.monotonic()

    answer = ask(daemon.port, "POST", "/v1/audio/transcriptions", body, {"Content-Type": kind.decode()})

    assert answer.status in (400, 404)
    assert answer.error
    assert time.monotonic() - began < 3.0
