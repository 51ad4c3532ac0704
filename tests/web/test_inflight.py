from __future__ import annotations

import pytest

from llamaswap.errors import Refusal
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.heads import RequestHead
from llamaswap.telemetry.inflight import InFlight
from llamaswap.web.answers import refuse
from llamaswap.web.inflight import cancel_flight
from llamaswap.web.keys import Keyring
from support.http1_wires import Clients


class Counter:
    """Where requests under way are cancelled."""

    def __init__(self) -> None:
        self.clients = Clients(self._handle)
        self.inflight = InFlight(self.clients.clock, lambda: 1_800_000_000.0)
        self.cancelled = 0

    async def _handle(self, exchange: Exchange) -> None:
        try:
            rest = exchange.head.path.removeprefix(b"/api/inflight/")
            cancel_flight(exchange, self.inflight, Keyring([]), rest)
        except Refusal as refusal:
            refuse(exchange, refusal)

    def enter(self) -> None:
        """Let a request come in."""
        self.inflight.enter(
            model="m1",
            req_path="/p",
            head=RequestHead(b"POST", b"/p", (1, 1), ()),
            client_host="",
            arrived=0.0,
            cancel=self._cancel,
        )

    def _cancel(self) -> None:
        self.cancelled += 1

    def post(self, path: str, accept: str = "*/*") -> bytes:
        """Send a POST; returns the whole answer."""
        end = self.clients.connect()
        end.send(f"POST {path} HTTP/1.1\r\nHost: h\r\nAccept: {accept}\r\nContent-Length: 0\r\n\r\n".encode())
        return end.take()


def test_a_request_under_way_is_cancelled_by_its_id() -> None:
    counter = Counter()
    counter.enter()

    answer = counter.post("/api/inflight/1/cancel")

    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.endswith(b'\r\n\r\n{"msg":"ok"}\n')
    assert counter.cancelled == 1


@pytest.mark.parametrize("request_id", ["99", "abc", "%00", "1%2F2"])
def test_an_unknown_id_is_told_in_the_usual_envelope(request_id: str) -> None:
    counter = Counter()
    counter.enter()
    answer = counter.post(f"/api/inflight/{request_id}/cancel")

    assert answer.startswith(b"HTTP/1.1 404 ")
    assert b'{"message":"inflight request not found","type":"invalid_request_error","param":null' in answer
    assert counter.cancelled == 0


def test_and_as_text_to_who_prefers_text() -> None:
    answer = Counter().post("/api/inflight/99/cancel", accept="text/plain")

    assert answer.endswith(b"\r\n\r\nllama-swap: inflight request not found")


@pytest.mark.parametrize("rest", ["1", "1/stop", "/cancel", "cancel", "1/2/cancel", ""])
def test_any_other_path_is_none(rest: str) -> None:
    counter = Counter()
    counter.enter()

    assert counter.post(f"/api/inflight/{rest}").endswith(b"\r\n\r\n404 page not found\n")
    assert counter.cancelled == 0
