"""What readers of the logs see."""

from __future__ import annotations

import pytest

from llamaswap.web.logs import MAX_UNREAD_BYTES
from support.web_daemon import WebDaemon

BOTH = """
    logToStdout: both
    models:
      a/b: {cmd: serve a/b, proxy: "http://127.0.0.1:9001", aliases: [nick]}
"""


def test_the_history_is_plain_text_and_browsers_are_sent_to_the_page() -> None:
    daemon = WebDaemon()
    daemon.books.proxy.append(b"[INFO] hello\n")

    asked = daemon.get("/logs")
    assert (asked.status, asked.body) == (200, b"[INFO] hello\n")
    assert asked.headers["content-type"] == "text/plain"
    browser = daemon.get("/logs", Accept="text/html,*/*")
    assert (browser.status, browser.headers["location"]) == (302, "/ui/")


def test_a_stream_shows_what_was_and_then_what_comes() -> None:
    daemon = WebDaemon()
    daemon.books.proxy.append(b"before\n")

    asked = daemon.get("/logs/stream")
    daemon.books.proxy.append(b"after\n")

    assert asked.status == 200
    assert asked.pieces == [b"before\n", b"after\n"]
    assert asked.headers["content-type"] == "text/plain"
    assert asked.headers["x-content-type-options"] == "nosniff"
    assert asked.headers["x-accel-buffering"] == "no"


@pytest.mark.parametrize("query", ["no-history", "no-history=", "no-history=false", "x=1&no-history=1"])
def test_a_stream_without_history_begins_now(query: str) -> None:
    daemon = WebDaemon()
    daemon.books.proxy.append(b"before\n")

    asked = daemon.get(f"/logs/stream?{query}")
    assert asked.status == 200  # its head is there at once
    assert asked.pieces == []
    daemon.books.proxy.append(b"after\n")

    assert asked.pieces == [b"after\n"]


@pytest.mark.parametrize("query", ["", "no-historyx", "history=no-history"])
def test_any_other_query_keeps_the_history(query: str) -> None:
    daemon = WebDaemon()
    daemon.books.proxy.append(b"before\n")

    assert daemon.get(f"/logs/stream?{query}").pieces == [b"before\n"]


@pytest.mark.parametrize(
    ("path", "pieces"),
    [
        ("", [b"proxy\n", b"model\n"]),
        ("/", [b"proxy\n", b"model\n"]),
        ("/proxy", [b"proxy\n"]),
        ("/upstream", [b"model\n"]),
        ("/a/b", [b"model\n"]),
        ("/a%2Fb", [b"model\n"]),
        ("/nick", [b"model\n"]),
        ("/a/b/and/more", [b"model\n"]),
    ],
)
def test_each_log_has_its_own_stream(path: str, pieces: list[bytes]) -> None:
    daemon = WebDaemon(BOTH)
    daemon.chat("a/b")
    asked = daemon.get(f"/logs/stream{path}?no-history")

    daemon.books.proxy.append(b"proxy\n")
    daemon.child.output(b"model\n")

    assert asked.pieces == pieces


@pytest.mark.parametrize("path", ["", "/proxy", "/a/b"])
def test_who_asks_for_the_head_of_a_stream_gets_it_and_is_no_reader(path: str) -> None:
    daemon = WebDaemon(BOTH)

    asked = daemon.request("HEAD", f"/logs/stream{path}")
    daemon.books.combined.append(b"more\n")

    assert asked.headers.keys() == daemon.get(f"/logs/stream{path}").headers.keys()
    asked.end.take()
    asked.end.send(b"GET /health HTTP/1.1\r\nHost: h\r\n\r\n")
    assert asked.end.take().startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("path", ["/ghost", "/A/b", "/%20", "/proxy/x"])
def test_an_unknown_log_is_a_mistake_of_the_client(path: str) -> None:
    asked = WebDaemon(BOTH).get(f"/logs/stream{path}")

    assert asked.status == 400
    assert asked.message == "invalid logger. Use 'proxy', 'upstream' or a model's ID"
    assert asked.headers["x-accel-buffering"] == "no"


def test_a_reader_who_leaves_is_forgotten() -> None:
    daemon = WebDaemon()
    asked = daemon.get("/logs/stream")

    asked.leaves()
    daemon.books.proxy.append(b"x")

    assert asked.pieces == []
    assert daemon.books.combined._subscribers == {}


def test_a_reader_who_does_not_read_costs_a_bounded_amount_and_misses_some() -> None:
    daemon = WebDaemon()
    slow = daemon.get("/logs/stream")
    quick = daemon.get("/logs/stream")
    slow.end.stall()

    for _ in range(64):
        daemon.books.proxy.append(b"x" * 65_536)

    slow.end.go_on()
    assert MAX_UNREAD_BYTES <= sum(map(len, slow.pieces)) <= MAX_UNREAD_BYTES + 2 * 65_536
    assert sum(map(len, quick.pieces)) == 64 * 65_536
    daemon.books.proxy.append(b"again")
    assert slow.pieces[-1] == b"again"


def test_streams_end_properly_when_the_service_stops_and_nothing_is_kept_of_them() -> None:
    daemon = WebDaemon()
    asked = daemon.get("/logs/stream")

    daemon.close()

    assert asked.pieces == [b""]
    daemon.books.proxy.append(b"too late")
    assert asked.pieces == [b""]
    assert daemon.books.combined._subscribers == {}


def test_a_head_of_a_stream_has_no_body() -> None:
    daemon = WebDaemon()
    daemon.books.proxy.append(b"before\n")

    asked = daemon.request("HEAD", "/logs/stream")

    assert asked.status == 200
    assert asked.body == b""
