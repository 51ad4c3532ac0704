"""Many requests over few connections: what a busy day looks like, in a minute."""

from __future__ import annotations

import json
import random
import socket
import threading
from collections import Counter
from http.client import HTTPConnection, HTTPException
from typing import Self

from support.field_call import CHAT
from support.real_daemon_talk import chat_body, json_fields, request_bytes

PATIENCE = 60.0  # seconds that an answer may take


class Caller(threading.Thread):
    """One client that asks on, over a connection that it keeps.

    Args:
        models: the first one is asked for nearly always.
        swap: how often another one is.
        abort: how often it leaves before the answer.
    """

    def __init__(self, port: int, models: str, seed: int, *, swap: float = 0.05, abort: float = 0.1) -> None:
        super().__init__(daemon=True)
        self.fates: Counter[str] = Counter()
        self._port = port
        self._models = models
        self._dice = random.Random(seed)
        self._swap = swap
        self._abort = abort
        self._turns = 0
        self._bodies = {
            (model, stream): chat_body(model, stream=stream) for model in models for stream in (True, False)
        }
        self._fields = json_fields(stub={"tokens": 3})

    def ask(self, turns: int) -> Self:
        """Ask so many times."""
        self._turns = turns
        self.start()
        return self

    def run(self) -> None:  # type: ignore[explicit-override]  # threading's name
        """Ask on."""
        connection = HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        for _ in range(self._turns):
            swaps = self._dice.random() < self._swap
            model = self._dice.choice(self._models[1:]) if swaps else self._models[0]
            body = self._bodies[model, self._dice.random() < 0.3]
            if self._dice.random() < self._abort:
                self.fates[self._leave(body)] += 1
            else:
                self.fates[self._stay(connection, body)] += 1
        connection.close()

    def _stay(self, connection: HTTPConnection, body: bytes) -> str:
        try:
            connection.request("POST", CHAT, body, self._fields)
            response = connection.getresponse()
            response.read()
        except (OSError, HTTPException) as error:
            connection.close()
            return type(error).__name__
        return str(response.status)

    def _leave(self, body: bytes) -> str:
        request = request_bytes("POST", CHAT, body, {**self._fields, "X-Stub": json.dumps({"first": 0.01})})
        with socket.create_connection(("127.0.0.1", self._port), timeout=PATIENCE) as wire:
            wire.sendall(request)
        return "left"


def busy_day(
    port: int, models: str, turns: int, *, callers: int = 4, seed: int = 0, swap: float = 0.05
) -> Counter[str]:
    """Ask so many times, shared between callers; returns what became of the requests."""
    crowd = [Caller(port, models, seed + number, swap=swap) for number in range(callers)]
    started = [caller.ask(turns // callers) for caller in crowd]
    fates: Counter[str] = Counter()
    for caller in started:
        caller.join(600)
        assert not caller.is_alive(), "a request never ended"
        fates += caller.fates
    return fates
