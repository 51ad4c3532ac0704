"""One daemon in memory whose work is counted: calls of functions, Python's and C's, and writes to its wires.

Counts don't depend on how busy the machine is, so that a change which doubles
the work of a request fails everywhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from twisted.internet.address import IPv4Address

from llamaswap.telemetry.loglines import LogLines
from support.web_daemon import WebDaemon

ASKED = (
    b'{"model":"m","messages":[{"role":"user","content":"Tell me something about the sea and the things that'
    b' live in it, in one or two sentences, please."}],"temperature":0.7,"max_tokens":64,"stream":false}'
)
ANSWER = (
    b'{"id":"chatcmpl-1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":'
    b'"assistant","content":"It is wide, and most of what lives in it is small."},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":12,"completion_tokens":10,"total_tokens":22}}'
)
CONFIG = """
    routing: {{scheduler: {{use: {use}}}}}
    models:
      m: {{cmd: serve m, proxy: "http://127.0.0.1:9001"}}
"""


class CheapWire:
    """A transport that only keeps what is written, so that counting finds nothing of the test's own."""

    disconnecting = False

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def getPeer(self) -> IPv4Address:
        return IPv4Address("TCP", "127.0.0.1", 1)

    getHost = getPeer

    def _nothing(self, *_: object) -> None:
        """Whatever else is asked of a transport."""

    registerProducer = unregisterProducer = pauseProducing = resumeProducing = _nothing
    loseConnection = abortConnection = setTcpNoDelay = setTcpKeepAlive = _nothing


class Workshop:
    """A client and a model's server on kept connections, with the daemon between them.

    Args:
        use: the scheduler.
    """

    def __init__(self, use: str = "fifo") -> None:
        self.daemon = daemon = WebDaemon(CONFIG.format(use=use))
        lines = LogLines(daemon.books.proxy, "info")
        lines.alone = True  # as `llama-swap` has it
        daemon.generation._site._access_log._lines = lines
        self.client_wire, self.upstream_wire = CheapWire(), CheapWire()
        server: Any = daemon.factory
        self.client: Any = server.buildProtocol(None)
        self.client.makeConnection(self.client_wire)
        self.client.dataReceived(request())
        daemon.ready()
        factory: Any = daemon.reactor.tcpClients[0][2]
        self.upstream: Any = factory.buildProtocol(None)
        self.upstream.makeConnection(self.upstream_wire)
        self.upstream.dataReceived(whole_answer())
        assert self.client_wire.written[-1].endswith(ANSWER)

    def ask(self) -> None:
        """One request, answered in one piece."""
        self.client.dataReceived(request())
        self.upstream.dataReceived(whole_answer())

    def begin_stream(self) -> None:
        """One request whose answer has begun."""
        self.client.dataReceived(request())
        self.upstream.dataReceived(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        )

    def token(self) -> None:
        """One chunk of it."""
        event = b'data: {"choices":[{"index":0,"delta":{"content":" sea"}}]}\n\n'
        self.upstream.dataReceived(b"%x\r\n%b\r\n" % (len(event), event))

    def writes(self) -> tuple[int, int]:
        """How often was written to the client and to the upstream."""
        return len(self.client_wire.written), len(self.upstream_wire.written)


def calls_of(work: Callable[[], None], times: int) -> float:
    """Return how many functions are called for one piece of work, its own included, on average."""
    work()
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        if event in ("call", "c_call"):
            calls += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        for _ in range(times):
            work()
    finally:
        sys.setprofile(before)
    return calls / times


def request(more: str = "") -> bytes:
    """A chat request; `more` are further header lines."""
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: box:8080\r\nUser-Agent: bench/1\r\n"
        f"Content-Type: application/json\r\n{more}Content-Length: {len(ASKED)}\r\n\r\n"
    )
    return head.encode() + ASKED


def whole_answer() -> bytes:
    """A server's answer."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(ANSWER)}\r\n\r\n"
    return head.encode() + ANSWER
