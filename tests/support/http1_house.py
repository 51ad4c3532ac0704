"""A server that relays everything to one upstream, for tests of the relay."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import CancelledError

from llamaswap.http1.client import Pool, UpstreamFailed
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.heads import ResponseHead, end_to_end
from llamaswap.http1.relay import Ended, Outcome, relay
from support.http1_wires import Clients, Upstreams, format_request

GET = b"GET /x HTTP/1.1\r\nHost: h\r\n\r\n"
OLD = b"GET /x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
CHUNKS = b'5;a="b"\r\nhello\r\n001\r\n!\r\n0\r\nX-Sum: 1\r\n\r\n'
CHUNKED = b"HTTP/1.1 200 Fine\r\nDate: d\r\nTransfer-Encoding: chunked\r\nx-Y: z\r\n\r\n"
SIZED = b"HTTP/1.1 200 OK\r\nDate: d\r\nContent-Length: 6\r\n\r\n"
ENDLESS = b"HTTP/1.1 200 OK\r\nDate: d\r\n\r\n"


class Listener:
    """An observer that remembers."""

    def __init__(self) -> None:
        """Have seen nothing."""
        self.statuses: list[int] = []
        self.body = b""

    def head(self, head: ResponseHead) -> None:
        self.statuses.append(head.status)

    def data(self, data: bytes) -> None:
        assert data
        self.body += data


class House:
    """A server that relays everything to one upstream."""

    def __init__(self, request: bytes = GET, **options: Any) -> None:
        self.upstreams = Upstreams()
        self.pool = Pool(self.upstreams)
        self.options = options
        self.outcomes: list[Outcome] = []
        self.ends: list[str] = []
        self.exchanges: list[Exchange] = []
        self.clients = Clients(self._handle, self.upstreams)
        self.client = self.clients.connect()
        self.client.send(*filter(None, [request]))

    async def _handle(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        body = await exchange.body()
        head = exchange.head
        request = [format_request(head.method, head.target, end_to_end(head.headers)), *body.wire]
        try:
            outcome = await relay(
                exchange, self.pool, "127.0.0.1", 81, request, method=head.method, **self.options
            )
        except UpstreamFailed as error:
            self.ends.append(error.reason)
            exchange.respond(502)
        except CancelledError:
            self.ends.append("cancelled")
            raise
        else:
            self.outcomes.append(outcome)

    def ended(self) -> list[Ended]:
        return [outcome.ended for outcome in self.outcomes]
