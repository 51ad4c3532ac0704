"""What a client's connection needs of the server that it belongs to, and what it may cost there."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any
from typing import Protocol as Seam

from twisted.internet.interfaces import IReactorTime

from llamaswap.http1.body import MOST_BODY_BYTES, Room
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.heads import RequestHead
from llamaswap.http1.memory import HeadMemory
from llamaswap.http1.parsing import Malformed

Handler = Callable[[Exchange], Coroutine[Any, Any, None]]
Fields = tuple[tuple[bytes, bytes], ...]

TEXT = ((b"Content-Type", b"text/plain; charset=utf-8"),)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one connection may cost."""

    head_bytes: int = 65536  # request line and fields of one request
    head_seconds: float = 30.0  # from a head's first byte to its last
    idle_seconds: float = 120.0  # between requests, and without progress of an answer being drained
    pipeline_bytes: int = 65536  # taken ahead of need, before reading is paused
    body_bytes: int = MOST_BODY_BYTES  # of one request, framing included
    body_seconds: float = 60.0  # for the next bytes of a body, while we are ready to take them


class Hosted(Seam):
    """A connection, as its server sees it."""

    @property
    def untaken(self) -> int:
        """Bytes of an answer that is complete here, and not with the client yet."""

    def close_when_idle(self) -> None:
        """Close now if nothing is under way; otherwise the end of the exchange does it."""

    def cut(self) -> None:
        """Drop the connection; the handler of an exchange in progress is cancelled."""


class Owner(Seam):
    """The server, as its connections see it."""

    handler: Handler
    clock: IReactorTime
    limits: Limits
    room: Room  # for the bodies of all requests
    memory: HeadMemory[RequestHead]
    closing: bool  # no connection takes another request

    def date(self) -> bytes:
        """Now, as the Date field has it."""

    def opened(self, connection: Hosted) -> None:
        """A connection begins."""

    def closed(self, connection: Hosted) -> None:
        """A connection is lost."""

    def refusal(self, error: Malformed) -> tuple[Fields, bytes]:
        """Fields and body of what a client is told whose request is not taken; called once for each."""
