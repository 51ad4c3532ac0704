"""Who can reach the daemon, and how much one who does may take of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from llamaswap.listening import DEFAULT_ADDRESS, endpoints_of
from llamaswap.tls import DEFAULT_ADDRESS as TLS_ADDRESS
from llamaswap.web.logs import MAX_UNREAD_BYTES
from support.web_daemon import TWO_MODELS, WebDaemon
from support.web_talk import Talk


@pytest.mark.parametrize("address", [DEFAULT_ADDRESS, TLS_ADDRESS, "localhost:1", "127.0.0.1:1"])
@pytest.mark.parametrize("dual_stack", [True, False])
def test_without_an_address_only_this_machine_is_served(address: str, dual_stack: bool) -> None:
    for description in endpoints_of(address, dual_stack=dual_stack):
        assert "interface=127.0.0.1:" in description or r"interface=\:\:1:" in description


def test_every_interface_has_to_be_asked_for() -> None:
    (everywhere,) = endpoints_of(":8080", dual_stack=False)

    assert "interface=0.0.0.0" in everywhere


def other_sites(daemon: WebDaemon) -> Iterator[tuple[str, Talk]]:
    page = {"Origin": "http://evil.example", "Referer": "http://evil.example/"}
    for path in ("/running", "/logs", "/metrics", "/api/metrics/activity", "/api/profiles", "/api/version"):
        yield path, daemon.request("GET", path, headers=page)
    yield "/api/events", daemon.request("GET", "/api/events", headers=page)
    yield "/api/models/unload", daemon.request("POST", "/api/models/unload", headers=page)


def test_no_page_of_another_site_may_read_an_answer_of_ours_but_the_list_of_models() -> None:
    """A browser asks for leave before it shows an answer to a page from elsewhere."""
    daemon = WebDaemon(TWO_MODELS)

    for path, asked in other_sites(daemon):
        assert "access-control-allow-origin" not in asked.headers, path
    listed = daemon.request("GET", "/v1/models", headers={"Origin": "http://evil.example"})
    assert listed.headers["access-control-allow-origin"] == "http://evil.example"
    assert "access-control-allow-credentials" not in listed.headers


@pytest.mark.parametrize("more", ["", "Access-Control-Allow-Origin: http://good.example\r\n"])
def test_which_pages_may_read_an_answer_of_a_model_is_up_to_its_server(more: str) -> None:
    daemon = WebDaemon(TWO_MODELS)
    page = {"Origin": "http://evil.example"}
    asked = daemon.request("POST", "/v1/chat/completions", headers=page, body=b'{"model":"a"}')
    daemon.ready()
    upstream = daemon.upstream()

    assert dict(upstream.fields)["Origin"] == page["Origin"]
    upstream.answers(more=more)
    allowed = more.strip().partition(": ")[2] or None
    assert asked.headers.get("access-control-allow-origin") == allowed


def test_a_reader_of_the_log_that_does_not_read_costs_no_more_than_its_share() -> None:
    daemon = WebDaemon(TWO_MODELS)
    readers = [daemon.get("/logs/stream/upstream") for _ in range(3)]
    for reader in readers:
        reader.end.stall()

    for _ in range(100):
        daemon.books.upstream.append(b"x" * 65536)

    for reader in readers:
        reader.end.go_on()
        assert MAX_UNREAD_BYTES < len(reader.raw) < MAX_UNREAD_BYTES + 4 * 65536


def test_a_client_that_takes_nothing_of_a_large_answer_does_not_keep_the_box_from_others() -> None:
    daemon = WebDaemon(TWO_MODELS)
    asked, next_one = daemon.chat(), daemon.chat()
    daemon.ready()
    upstream = daemon.upstream()
    asked.end.stall()
    upstream.end.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
    for _ in range(200):
        upstream.end.send(b"x" * 65536)

    daemon.reactor.advance(119.0)
    assert not daemon.reactor.attempts
    daemon.reactor.advance(2.0)
    daemon.upstream().answers()

    assert asked.end.is_aborted()
    assert next_one.status == 200


def test_what_is_kept_of_a_name_that_nothing_has_is_short() -> None:
    daemon = WebDaemon(TWO_MODELS)

    asked = daemon.post("/v1/chat/completions", {"model": "x" * 1_000_000})

    assert asked.status == 404
    assert len(asked.raw) < 1000
    assert len(daemon.rows[-1].model) < 300
