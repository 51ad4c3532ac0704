"""Clients of a daemon under test: hundreds at once, in one thread, each with a diary of its request.

Knows HTTP/1.1 from the client's side, and every way to leave; nothing of
models.  All moments are seconds on the monotonic clock, which the stubs'
records share.
"""

from __future__ import annotations

import heapq
import itertools
import selectors
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Literal

import httptools
from typing_extensions import override

Leave = Literal["fin", "rst", "half"]

CONNECT = 20.0  # seconds that a connection may take to be made
PATIENCE = 60.0  # seconds that an answer may take, unless the test says otherwise
PIECE = 1 << 18


class Network:
    """The thread that all clients of one test share."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._bell, self._ear = socket.socketpair()
        self._ear.setblocking(False)
        self._selector.register(self._ear, selectors.EVENT_READ)
        self._errands: deque[Callable[[], None]] = deque()
        self._alarms: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self._open = True
        self._thread = threading.Thread(target=self._run, name="clients", daemon=True)
        self._thread.start()

    def soon(self, *errands: Callable[[], None]) -> None:
        """Run these in the thread, one after another without a pause."""
        self._errands.extend(errands)
        self._bell.send(b"!")

    def at(self, moment: float, errand: Callable[[], None]) -> None:
        """Run this in the thread at a moment."""
        alarm = (moment, next(self._numbers), errand)
        self.soon(lambda: heapq.heappush(self._alarms, alarm))

    def watch(self, wire: socket.socket, events: int, ready: Callable[[int], None]) -> None:
        """Call `ready` when a socket is; in the thread only."""
        if wire in self._selector.get_map():
            self._selector.modify(wire, events, ready)
        else:
            self._selector.register(wire, events, ready)

    def forget(self, wire: socket.socket) -> None:
        """Watch a socket no more; in the thread only."""
        with suppress(KeyError, ValueError):
            self._selector.unregister(wire)

    def close(self) -> None:
        """End the thread."""

        def end() -> None:
            self._open = False

        self.soon(end)
        self._thread.join(10.0)
        for closable in (self._selector, self._bell, self._ear):
            closable.close()

    def _run(self) -> None:
        while self._open:
            left = max(0.0, self._alarms[0][0] - time.monotonic()) if self._alarms else None
            for key, mask in self._selector.select(left):
                if key.fileobj is self._ear:
                    self._ear.recv(4096)
                else:
                    key.data(mask)
            while self._errands:
                self._errands.popleft()()
            while self._alarms and self._alarms[0][0] <= time.monotonic():
                heapq.heappop(self._alarms)[2]()


class Client:
    """One request on a connection of its own, and what became of it.

    Attributes:
        sent: when it was written; 0.0 before.
        head: when the head of its answer had come; None = it has not.
        first: when the first byte of the body came.
        end: when it was over, in whatever way.
        status: of its answer, 0 before there is one.
        headers: names in lower case.
        body: what of it has come so far.
        arrivals: when each piece of it came.
        complete: whether the whole answer came, by its own frame.
        left_at: when we left, if we did.
        left_how: in which way.
    """

    def __init__(self, network: Network, port: int, request: bytes, name: str = "") -> None:
        self.name = name
        self.sent = 0.0
        self.head: float | None = None
        self.first: float | None = None
        self.end: float | None = None
        self.left_at: float | None = None
        self.left_how: Leave | None = None
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = bytearray()
        self.arrivals: list[float] = []
        self.complete = False
        self.trouble = ""
        self._network = network
        self._unsent = memoryview(request)
        self._over = threading.Event()
        self._parser = httptools.HttpResponseParser(self)
        self._wire = socket.create_connection(("127.0.0.1", port), timeout=CONNECT)
        self._wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._wire.setblocking(False)

    # --- what a test says ----------------------------------------------------------------------------------

    def go(self) -> None:
        """Send the request."""
        self._network.soon(self._go)

    def leave(self, how: Leave = "fin", after: float = 0.0) -> None:
        """Leave, `after` seconds from now: close, reset, or close our own side only."""
        if after:
            self._network.at(time.monotonic() + after, lambda: self._leave(how))
        else:
            self._network.soon(lambda: self._leave(how))

    def wait(self, deadline: float = PATIENCE) -> None:
        """Wait until it is over, in whatever way."""
        assert self._over.wait(deadline), f"no end of {self} within {deadline} s"

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes of it."""
        return self._over.is_set()

    @override
    def __str__(self) -> str:
        state = "over" if self.is_over else "under way"
        whole = "whole" if self.complete else f"cut off ({self.trouble})" if self.is_over else "so far"
        size, begin = len(self.body), bytes(self.body[:300])
        return f"{self.name} ({state}, {self.status}, {size} bytes {whole}: {begin!r})"

    # --- what the network does -----------------------------------------------------------------------------

    def _go(self) -> None:
        self.sent = time.monotonic()
        self._ready(selectors.EVENT_WRITE)

    def _ready(self, mask: int) -> None:
        try:
            if self._unsent and mask & selectors.EVENT_WRITE:
                self._unsent = self._unsent[self._wire.send(self._unsent) :]
            if mask & selectors.EVENT_READ:
                self._hear(self._wire.recv(PIECE))
        except BlockingIOError:
            pass
        except OSError as error:
            self._finish(f"{type(error).__name__}")
        if not self.is_over:
            more = selectors.EVENT_WRITE if self._unsent else 0
            self._network.watch(self._wire, selectors.EVENT_READ | more, self._ready)

    def _hear(self, data: bytes) -> None:
        if data:
            try:
                self._parser.feed_data(data)
            except httptools.HttpParserError as error:
                self._finish(f"not HTTP: {error}")
        else:
            framed = {"content-length", "transfer-encoding"} & self.headers.keys()
            self.complete = self.complete or (self.status > 0 and not framed)
            self._finish("closed")

    def _leave(self, how: Leave) -> None:
        if self.is_over:
            return
        self.left_at, self.left_how = time.monotonic(), how
        if how == "half":
            self._wire.shutdown(socket.SHUT_WR)
            return
        if how == "rst":
            self._wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            with suppress(OSError):
                self._wire.shutdown(socket.SHUT_WR)
        self._finish("we left")

    def _finish(self, trouble: str) -> None:
        if self.is_over:
            return
        self.end = time.monotonic()
        self.trouble = trouble
        self._network.forget(self._wire)
        self._wire.close()
        self._over.set()

    # --- what the parser finds -----------------------------------------------------------------------------

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of the head; of several with one name, all of them."""
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        self.headers[key] = f"{self.headers[key]}, {text}" if key in self.headers else text

    def on_headers_complete(self) -> None:
        """The head has come; one of an interim answer doesn't count."""
        self.status = self._parser.get_status_code()
        if self.status >= 200:
            self.head = time.monotonic()

    def on_body(self, data: bytes) -> None:
        """A piece of the body has come."""
        now = time.monotonic()
        self.first = self.first or now
        self.arrivals.append(now)
        self.body += data

    def on_message_complete(self) -> None:
        """The answer is whole."""
        if self.status >= 200:
            self.complete = True
            self._finish("")
        else:
            self.headers.clear()


def release(network: Network, clients: Iterable[Client]) -> None:
    """Send the requests of several clients in the same instant."""
    network.soon(*(client._go for client in clients))
