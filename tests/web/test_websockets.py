"""WebSockets, and the models that ignore them."""

from __future__ import annotations

import pytest

from llamaswap.config.model import ModelConfig
from llamaswap.errors import NotLoaded
from llamaswap.http1.client import Pool
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.heads import Headers
from llamaswap.http1.relay import relay
from llamaswap.proxying.local import upstream_fields
from llamaswap.web.answers import refuse
from llamaswap.web.websockets import goes_past_the_queue, is_websocket
from support.http1_wires import Clients, End, Upstreams, format_request

PLAIN = ModelConfig(id="m1")
IGNORING = ModelConfig(id="m1", ignore_websockets=True)
ASKS: Headers = ((b"Upgrade", b"websocket"), (b"Connection", b"Upgrade"))
ASK = (
    b"GET /ws HTTP/1.1\r\nHost: h\r\nX-Mine: 1\r\n"
    b"Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n"
)
SWITCH = (
    b"HTTP/1.1 101 Switching Protocols\r\nDate: d\r\nSec-WebSocket-Accept: x\r\n"
    b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
)


@pytest.mark.parametrize(
    "headers",
    [
        ASKS,
        ((b"upgrade", b"WebSocket"), (b"CONNECTION", b"keep-alive, upgrade")),
        ((b"Upgrade", b"h2c, websocket"), (b"Connection", b"x"), (b"Connection", b"UPGRADE")),
        ((b"Upgrade", b"h2c"), (b"Upgrade", b" websocket "), (b"Connection", b"upgrade")),
    ],
)
def test_a_websocket_is_known_by_two_fields(headers: Headers) -> None:
    assert is_websocket(headers)


@pytest.mark.parametrize(
    "headers",
    [
        (),
        ((b"Upgrade", b"websocket"),),
        ((b"Connection", b"Upgrade"),),
        ((b"Upgrade", b"websocket"), (b"Connection", b"keep-alive")),
        ((b"Upgrade", b"h2c"), (b"Connection", b"Upgrade")),
        ((b"Upgrade", b"websockets"), (b"Connection", b"Upgrade")),
        ((b"Upgrade", b"websocket"), (b"Connection", b"no-upgrade")),
    ],
)
def test_and_by_nothing_less(headers: Headers) -> None:
    assert not is_websocket(headers)


def test_a_websocket_is_an_ordinary_request_unless_the_model_ignores_it() -> None:
    assert not goes_past_the_queue(ASKS, PLAIN, ready=False)
    assert not goes_past_the_queue((), IGNORING, ready=False)
    assert goes_past_the_queue(ASKS, IGNORING, ready=True)


def test_an_ignored_websocket_starts_nothing() -> None:
    with pytest.raises(NotLoaded) as refused:
        goes_past_the_queue(ASKS, IGNORING, ready=False)

    assert refused.value.status == 409
    assert str(refused.value) == "model m1 is not loaded; ignored websocket requests cannot start it"


def house(*, ready: bool) -> tuple[End, Upstreams]:
    """A client whose request meets the rules above and, if they let it, an upstream."""
    upstreams = Upstreams()
    pool = Pool(upstreams)

    async def handler(exchange: Exchange) -> None:
        head = exchange.head
        try:
            assert goes_past_the_queue(head.headers, IGNORING, ready=ready)
        except NotLoaded as refusal:
            refuse(exchange, refusal)
            return
        fields = upstream_fields(head, exchange.client_host, metered=False)
        request = format_request(head.method, head.target, fields)
        await relay(exchange, pool, "127.0.0.1", 81, [request], method=head.method)

    client = Clients(handler, upstreams).connect()
    client.send(ASK)
    return client, upstreams


def test_a_socket_that_may_pass_crosses_in_both_directions() -> None:
    client, upstreams = house(ready=True)
    upstream = upstreams.accept()
    asked = upstream.take()
    assert asked.startswith(b"GET /ws HTTP/1.1\r\nHost: h\r\nX-Mine: 1\r\n")
    assert asked.endswith(b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n")

    upstream.send(SWITCH)
    assert client.take() == SWITCH
    client.send(b"\x81\x85hello")
    assert upstream.take() == b"\x81\x85hello"
    upstream.send(b"\x81\x03bye")
    assert client.take() == b"\x81\x03bye"

    upstream.leave()
    assert client.is_closed()


def test_a_socket_that_may_not_is_an_ordinary_conflict() -> None:
    client, upstreams = house(ready=False)

    assert client.take().startswith(b"HTTP/1.1 409 Conflict\r\n")
    assert upstreams.attempts == 0
