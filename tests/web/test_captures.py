from __future__ import annotations

import json

import pytest

from llamaswap.errors import Refusal
from llamaswap.http1.exchange import Exchange
from llamaswap.metering.capture import Capture, HeadFields, fields_json
from llamaswap.metering.captures import Captures
from llamaswap.web.answers import refuse
from llamaswap.web.captures import mark_captured, show_capture
from support.http1_wires import Clients


def fields(*headers: tuple[bytes, bytes]) -> HeadFields:
    """A head with these."""
    return HeadFields(fields_json(headers, with_length=True))


KEPT = Captures(100_000)
KEPT.keep(
    13,
    Capture(
        req_path="/v1/chat/completions",
        asked=fields((b"content-type", b"application/json"), (b"authorization", b"Bearer s3cret")),
        req_body=[b'{"model":"m1"}'],
        answered=fields((b"content-type", b"application/json")),
        resp_body=(),
    ),
)


def get(rest: str) -> tuple[int, bytes]:
    """Ask for a capture; returns status and body."""

    async def handle(exchange: Exchange) -> None:
        try:
            show_capture(exchange, KEPT, exchange.head.path.removeprefix(b"/api/captures/"))
        except Refusal as refusal:
            refuse(exchange, refusal)

    end = Clients(handle).connect()
    end.send(f"GET /api/captures/{rest} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
    head, _, body = end.take().partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), body


def test_a_capture_is_shown_by_the_id_of_its_row() -> None:
    status, body = get("13")

    assert status == 200
    assert json.loads(body) == {
        "id": 13,
        "req_path": "/v1/chat/completions",
        "req_headers": {"Content-Type": "application/json", "Authorization": "[REDACTED]"},
        "req_body": "eyJtb2RlbCI6Im0xIn0=",
        "resp_headers": {"Content-Type": "application/json"},
        "resp_body": None,
    }


@pytest.mark.parametrize("rest", ["14", "0", "-1", "+14"])
def test_one_that_is_not_there_is_not_found(rest: str) -> None:
    status, body = get(rest)

    assert status == 404
    assert json.loads(body)["error"]["message"] == "capture not found"


@pytest.mark.parametrize("rest", ["abc", "1.5", "1e3", "%EF%BC%91", "13x", "9" * 5000])
def test_an_id_that_is_no_integer_is_a_bad_request(rest: str) -> None:
    status, body = get(rest)

    assert status == 400
    assert json.loads(body)["error"]["message"] == "invalid capture ID"


@pytest.mark.parametrize("rest", ["", "13/more"])
def test_any_other_path_is_none(rest: str) -> None:
    assert get(rest) == (404, b"404 page not found\n")


def test_rows_say_which_of_them_have_a_capture_now() -> None:
    rows = [{"id": 12, "has_capture": False}, {"id": 13, "has_capture": False}]
    mark_captured(rows, KEPT)

    assert [row["has_capture"] for row in rows] == [False, True]
