"""What happens at the door."""

from __future__ import annotations

import pytest

from support.web_daemon import WebDaemon


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_path_that_nothing_answers_is_a_plain_404(method: str) -> None:
    asked = WebDaemon().request(method, "/does-not-exist")

    assert (asked.status, asked.body) == (404, b"404 page not found\n")
    assert asked.headers["content-type"] == "text/plain; charset=utf-8"
    assert asked.headers["x-content-type-options"] == "nosniff"


def test_a_wrong_method_is_a_plain_405_that_names_the_right_ones() -> None:
    asked = WebDaemon().get("/v1/chat/completions")

    assert (asked.status, asked.body) == (405, b"Method Not Allowed\n")
    assert asked.headers["allow"] == "POST"
    assert asked.headers["x-content-type-options"] == "nosniff"


def test_a_connection_serves_one_request_after_the_other_refusals_included() -> None:
    daemon = WebDaemon()
    end = daemon.connect()

    end.send(b"GET /no HTTP/1.1\r\nHost: h\r\n\r\nGET /health HTTP/1.1\r\nHost: h\r\n\r\n")

    answers = end.take()
    assert answers.count(b"HTTP/1.1 ") == 2
    assert answers.endswith(b"\r\n\r\nOK")
    assert not end.is_closed()


def test_a_client_that_leaves_in_the_middle_of_its_body_is_nobody_to_answer() -> None:
    daemon = WebDaemon()
    end = daemon.connect()
    end.send(b"POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n{")

    end.leave()

    assert daemon.rows == []
    assert daemon.children.started == []


def test_a_request_waits_for_its_body_before_its_model_is_looked_for() -> None:
    daemon = WebDaemon()
    end = daemon.connect()
    end.send(
        b"POST /v1/completions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
        b'Content-Length: 13\r\nExpect: 100-continue\r\n\r\n{"mod'
    )
    assert daemon.children.started == []

    end.send(b'el":"a"}')

    assert daemon.running == ["a"]
