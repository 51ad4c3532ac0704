"""What systemd does for a unit with a socket: open it, keep it open, and leave it to each daemon in turn."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from threading import Event
from typing import Any

from support.real_daemon import LLAMA_SWAP
from support.real_daemon_talk import ask, chat_body, json_fields

HAND_OVER = """
import os, sys

numbers = [int(number) for number in sys.argv[1].split(",")]
for place, number in enumerate(numbers):
    os.dup2(number, 200 + place)  # out of the way of those that come to 3, 4 ...
for place, _ in enumerate(numbers):
    os.dup2(200 + place, 3 + place)
os.closerange(3 + len(numbers), 256)
os.environ["LISTEN_FDS"] = str(len(numbers))
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""


class Activator:
    """Sockets that stay open whatever becomes of the daemons that serve them."""

    def __init__(self, *sockets: socket.socket) -> None:
        self.sockets = sockets

    @property
    def ports(self) -> list[int]:
        """Where they listen, 0 for one that has no port."""
        places = [listening.getsockname() for listening in self.sockets]
        return [0 if isinstance(place, str) else place[1] for place in places]

    def how(self, command: Sequence[str] = LLAMA_SWAP, names: Sequence[str] = ()) -> dict[str, Any]:
        """How a `Daemon` is run that takes the sockets over.

        Args:
            command: the words before `--config`.
            names: of the sockets; systemd always gives some, others tend to give none.
        """
        numbers = [listening.fileno() for listening in self.sockets]
        launcher = (sys.executable, "-I", "-S", "-c", HAND_OVER, ",".join(map(str, numbers)))
        environ = {"LISTEN_FDNAMES": ":".join(names)} if names else {}
        return {
            "command": (*launcher, *command),
            "pass_fds": numbers,
            "listen": False,
            "environ": environ,
        }


@contextmanager
def activator(*places: tuple[socket.AddressFamily, Any]) -> Iterator[Activator]:
    """Sockets that listen at these places."""
    sockets = [socket.socket(family, socket.SOCK_STREAM) for family, _ in places]
    try:
        for listening, (_, place) in zip(sockets, places, strict=True):
            listening.bind(place)
            listening.listen(4096)
        yield Activator(*sockets)
    finally:
        for listening in sockets:
            listening.close()


@dataclass(slots=True)
class Told:
    """What clients were told, each over a connection of its own."""

    statuses: list[int] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)  # what was no answer at all
    longest: float = 0.0  # seconds that one of them waited


@contextmanager
def load(port: int, clients: int, asks: Sequence[Mapping[str, Any]]) -> Iterator[Told]:
    """Clients that ask all the time, one question after the other, until the block ends."""
    told, over = Told(), Event()

    def client(first: int) -> None:
        turn = first
        while not over.is_set():
            began = time.monotonic()
            try:
                told.statuses.append(ask(port, **asks[turn % len(asks)]).status)
            except (OSError, HTTPException) as trouble:
                told.troubles.append(repr(trouble))
            told.longest = max(told.longest, time.monotonic() - began)
            turn += 1

    with ThreadPoolExecutor(clients) as pool:
        running = [pool.submit(client, number) for number in range(clients)]
        try:
            yield told
        finally:
            over.set()
        for one in running:
            one.result(60)


HEALTH = {"method": "GET", "path": "/health"}


def chat_of(model: str) -> dict[str, Any]:
    """A question for a model."""
    return {
        "method": "POST",
        "path": "/v1/chat/completions",
        "body": chat_body(model),
        "headers": json_fields(),
    }
