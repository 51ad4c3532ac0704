"""Real clients that wait at a real daemon, and a gate that decides when they are served.

The gate is a model's upstream: it answers one request after another, but only
while it is open.  What waiting costs is not known here.
"""

from __future__ import annotations

import json
import re
import selectors
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from bench.launching import Failed
from bench.talk import get

PATIENCE = 60.0  # seconds for anything
LOOK = 0.02  # seconds between two looks
BODY_BYTES = 300
ANSWER = json.dumps(
    {
        "object": "chat.completion",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10},
    }
).encode()
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class Gate:
    """An upstream for one job at a time, on a thread of its own.

    Args:
        listener: it accepts here.
    """

    def __init__(self, listener: socket.socket) -> None:
        self.port = int(listener.getsockname()[1])
        self.opened = threading.Event()
        self.held = False  # whether somebody has asked and is not answered
        self._listener = listener
        self._connections: list[socket.socket] = []
        threading.Thread(target=self._run, daemon=True).start()

    def close(self) -> None:
        """End it, with every connection that it has."""
        for connection in (self._listener, *self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def _run(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._connections.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(ANSWER)}\r\n\r\n"
        with suppress(OSError):
            while _read_message(connection):
                self.held = True
                self.opened.wait()
                self.held = False
                connection.sendall(head.encode() + ANSWER)


def _read_message(connection: socket.socket) -> bool:
    """Read one message; False when there are no more."""
    seen = b""
    while (end := seen.find(b"\r\n\r\n")) < 0 or len(seen) < end + 4 + _body_length(seen[:end]):
        data = connection.recv(65536)
        if not data:
            return False
        seen += data
    return True


def _body_length(head: bytes) -> int:
    found = _LENGTH.search(head)
    return int(found[1]) if found else 0


class Clients:
    """Clients of a daemon, each with one connection.

    Args:
        port: the daemon's.
        size: how many.
        model: which they ask for.
    """

    def __init__(self, port: int, size: int, model: str) -> None:
        self.port = port
        self.size = size
        self._clients = [socket.create_connection(("127.0.0.1", port), PATIENCE) for _ in range(size)]
        self._request = chat_request(model)

    def ask(self) -> None:
        """Send everybody's request."""
        for client in self._clients:
            client.sendall(self._request)

    def read(self) -> None:
        """Read everybody's answer.

        Raises:
            Failed: one is not what the gate has said, or does not come.
        """
        seen = dict.fromkeys(range(self.size), b"")
        with selectors.DefaultSelector() as selector:
            for place, client in enumerate(self._clients):
                selector.register(client, selectors.EVENT_READ, place)
            while selector.get_map():
                ready = selector.select(PATIENCE)
                if not ready:
                    raise Failed(f"{len(selector.get_map())} clients wait in vain")
                for key, _ in ready:
                    seen[key.data] += self._clients[key.data].recv(65536)
                    if _is_whole(seen[key.data]):
                        selector.unregister(key.fileobj)

    def leave(self) -> None:
        """Close every connection."""
        for client in self._clients:
            client.close()


def _is_whole(answer: bytes) -> bool:
    """Whether an answer has come; it must be the gate's."""
    if answer.endswith(ANSWER) and answer.startswith(b"HTTP/1.1 200 "):
        return True
    if not answer or len(answer) > len(ANSWER) + 2000 or not b"HTTP/1.1 200 ".startswith(answer[:13]):
        raise Failed(f"not an answer: {answer[:300]!r}")
    return False


def chat_request(model: str) -> bytes:
    """A chat completion with a body of BODY_BYTES."""
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": "{}"}]})
    body = body.replace("{}", "x" * (BODY_BYTES - len(body) + 2))
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return (head + body).encode()


def waiting_now(port: int) -> int:
    """How many requests wait at a daemon, as it says itself."""
    lines = get(port, "/metrics")[1].decode().splitlines()
    depths = [line for line in lines if line.startswith("llamaswap_scheduler_queue_depth{")]
    return int(sum(float(line.rpartition(" ")[2]) for line in depths))


def until(holds: Callable[[], bool], what: str) -> None:
    """Wait until something holds; Failed when it does not in time."""
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise Failed(f"in vain waited for {what}")
        time.sleep(LOOK)


@contextmanager
def gate() -> Iterator[Gate]:
    """A closed gate on a free port."""
    it = Gate(socket.create_server(("127.0.0.1", 0), backlog=128))
    try:
        yield it
    finally:
        it.opened.set()
        it.close()


@contextmanager
def clients(port: int, size: int, model: str) -> Iterator[Clients]:
    """So many clients, connected."""
    them = Clients(port, size, model)
    try:
        yield them
    finally:
        them.leave()
