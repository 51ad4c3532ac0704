"""Nothing that a client or a child says becomes a line of its own in the daemon's log, or moves a cursor."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.security_hostile import FORGED, logged, logged_by_twistd, texts, values
from support.web_daemon import WebDaemon

LINE = re.compile(r"\[(DEBUG|INFO|WARN|ERROR)\] .*|    .*")


def lines_of(daemon: WebDaemon) -> list[str]:
    """What the daemon has said, line by line as a reader sees it."""
    return daemon.books.proxy.history().decode().split("\n")[:-1]


def do_harm(daemon: WebDaemon, text: str, value: str) -> None:
    """Put words wherever a client, a model's server and its process can: each leaves a line or more."""
    said = {"User-Agent": value, "X-Forwarded-For": value, "X-Real-IP": value, "X-LlamaSwap-Priority": value}
    body = json.dumps({"model": f"no {text}"}).encode()
    daemon.request("POST", "/v1/chat/completions", headers=said, body=body)
    daemon.request("GET", "/api/captures/%1b%0d%0a" + "".join(f"%{byte:02x}" for byte in text.encode()))
    asked = daemon.request("POST", "/v1/chat/completions?q=1", headers=said, body=b'{"model":"a"}')
    daemon.child.output(text.encode() + b"\n")
    daemon.ready()
    error = json.dumps({"error": {"message": text}}).encode()
    daemon.upstream().answers(error, "500 Oh")
    assert asked.status == 500
    daemon.chat("b")
    daemon.goes()
    daemon.child.output(text.encode() + b"\n")
    daemon.child.exits(3)


@given(texts, values)
@settings(max_examples=40, deadline=None)
def test_whatever_is_said_the_log_holds_lines_of_ours_only(text: str, value: str) -> None:
    daemon = WebDaemon()

    with logged(daemon):
        do_harm(daemon, text, value)

    lines = lines_of(daemon)
    assert len(lines) >= 6
    for line in lines:
        assert line.isprintable(), line
        assert LINE.fullmatch(line), line


@pytest.mark.parametrize("text", FORGED)
def test_nobody_forges_a_line(text: str) -> None:
    daemon = WebDaemon()

    with logged(daemon):
        do_harm(
            daemon, text, text.replace("\n", " ").replace("\r", " ").replace("\x1b", "").replace("\x07", "")
        )

    assert not [line for line in lines_of(daemon) if line.startswith("[ERROR] service.stopped")]
    assert all(line.isprintable() for line in lines_of(daemon))


@pytest.mark.parametrize("text", ["\x1b[2J", "a\r[ERROR]", "a\x9b31m"])
def test_twistds_own_log_gets_printable_text_too(text: str) -> None:
    """`twistd` writes events with an observer of its own, which escapes nothing but line feeds."""
    daemon = WebDaemon()

    with logged_by_twistd() as log:
        do_harm(daemon, text, text.replace("\x1b", "\x9b").replace("\r", "\x85"))

    lines = log.getvalue().split("\n")
    assert len(lines) >= 6
    assert [line for line in lines if not line.isprintable()] == []


@given(st.binary(max_size=200))
@settings(max_examples=40, deadline=None)
def test_a_childs_output_is_in_its_own_logs_and_not_in_the_daemons(data: bytes) -> None:
    daemon = WebDaemon()
    with logged(daemon):
        daemon.chat()
        before = daemon.books.proxy.history()
        daemon.child.output(b"\n[ERROR] forged\n" + data)

    assert daemon.books.upstream.history().endswith(data)
    assert daemon.books.proxy.history() == before
    assert daemon.get("/logs").body.find(b"forged") < 0
