"""Clients that keep a daemon busy: pings that meet TTLs, streams, some of which are left, readers of events.

Every answer is looked at; one that is wrong ends the run.
"""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from typing import Any

from bench.launching import Failed

PATIENCE = 30.0  # seconds that an answer may take
LEAVE = 0.1  # how often a client leaves its stream
PRIORITIES = ("batch", "", "", "interactive")


class Traffic:
    """Everybody who talks to a daemon, each on a thread.

    Attributes:
        fates: what became of requests: `answered` or `left`.
    """

    def __init__(self, port: int) -> None:
        self.fates: Counter[str] = Counter()
        self._port = port
        self._began = time.monotonic()
        self._took: list[tuple[float, float]] = []  # when it was over, since the beginning, and its seconds
        self._failure: BaseException | None = None
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._readers: list[socket.socket] = []

    def begin(self, models: str, ttl: float) -> None:
        """Send everybody to work."""
        for number, model in enumerate(models):
            self._start(self._pings, model, ttl, number)
        self._start(self._streams, models, len(models))
        for _ in range(2):  # one who reads, and one who never does
            self._readers.append(socket.create_connection(("127.0.0.1", self._port), PATIENCE))
            self._readers[-1].sendall(b"GET /api/events HTTP/1.1\r\nHost: bench\r\n\r\n")
        self._start(self._reads, self._readers[0])

    def end(self) -> None:
        """Send everybody home."""
        self._over.set()
        for reader in self._readers:
            with suppress(OSError):
                reader.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE)
        for reader in self._readers:
            reader.close()

    def assert_well(self) -> None:
        """Raise what went wrong for anybody."""
        if self._failure is not None:
            raise Failed(f"a client had {self._failure!r}") from self._failure

    def percentile(self, share: float, since: float, until: float) -> float:
        """The seconds in which such a share of the answers of a time were there; 0 without any."""
        took = sorted(seconds for at, seconds in tuple(self._took) if since <= at <= until)
        return took[min(len(took) - 1, int(len(took) * share))] if took else 0.0

    def _start(self, work: Any, *arguments: Any) -> None:
        def run() -> None:
            try:
                work(*arguments)
            except (OSError, HTTPException, ValueError, AssertionError) as failure:
                if not self._over.is_set():
                    self._failure = failure

        self._threads.append(threading.Thread(target=run, daemon=True))
        self._threads[-1].start()

    def _pings(self, model: str, ttl: float, seed: int) -> None:
        """Ask about as often as the model's time runs out."""
        dice = random.Random(seed)
        while not self._over.wait(ttl * dice.uniform(0.5, 1.8)):
            self._ask(model, stream=False, priority=dice.choice(PRIORITIES))

    def _streams(self, models: str, seed: int) -> None:
        """Ask for streams without a pause, and leave some."""
        dice = random.Random(seed)
        while not self._over.wait(0.01):
            model, priority = dice.choice(models), dice.choice(PRIORITIES)
            if dice.random() < LEAVE:
                self._leave(model, dice.uniform(0.0, 0.3))
            else:
                self._ask(model, stream=True, priority=priority)

    def _ask(self, model: str, *, stream: bool, priority: str) -> None:
        began = time.monotonic()
        connection = HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        try:
            self._send(connection, model, stream=stream, priority=priority)
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        assert response.status == 200, (response.status, body[:300])
        assert not stream or body.endswith(b"data: [DONE]\n\n"), body[-300:]
        self._took.append((time.monotonic() - self._began, time.monotonic() - began))
        self.fates["answered"] += 1

    def _leave(self, model: str, after: float) -> None:
        """Ask for a long stream, and go."""
        connection = HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        self._send(connection, model, stream=True, stub={"tokens": 100, "gap": 0.05})
        self._over.wait(after)
        connection.close()
        self.fates["left"] += 1

    def _send(
        self,
        connection: HTTPConnection,
        model: str,
        *,
        stream: bool,
        priority: str = "",
        stub: dict[str, Any] | None = None,
    ) -> None:
        body = {"model": model, "stream": stream, "messages": [{"role": "user", "content": "hi"}]}
        fields = {"Content-Type": "application/json", "X-Stub": json.dumps(stub or {})}
        if priority:
            fields["X-LlamaSwap-Priority"] = priority
        connection.request("POST", "/v1/chat/completions", json.dumps(body), fields)

    @staticmethod
    def _reads(reader: socket.socket) -> None:
        while reader.recv(1 << 16):
            pass


def fill(port: int, model: str, count: int) -> None:
    """Ask a model so often, over one connection: whatever is kept up to a limit is full then.

    Raises:
        Failed: an answer was wrong.
    """
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        for number in range(count):
            body = {"model": model, "messages": [{"role": "user", "content": f"number {number}"}]}
            connection.request(
                "POST", "/v1/chat/completions", json.dumps(body), {"Content-Type": "application/json"}
            )
            response = connection.getresponse()
            said = response.read()
            if response.status != 200:
                raise Failed(f"{model} said {said[:300]!r}")
    finally:
        connection.close()


@contextmanager
def traffic(port: int, models: str, ttl: float) -> Iterator[Traffic]:
    """Everybody at work for a while; in the end, nothing went wrong for anybody."""
    running = Traffic(port)
    try:
        running.begin(models, ttl)
        yield running
    finally:
        running.end()
    running.assert_well()
