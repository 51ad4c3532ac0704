"""`/api/events`: the bulletin as an event stream, at each reader's own pace."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from twisted.logger import Logger

from llamaswap.config.model import Config
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.stream import ResponseStream
from llamaswap.telemetry.bulletin import Bulletin
from llamaswap.web.answers import NO_SNIFFING, UNBUFFERED
from llamaswap.web.models import model_record
from llamaswap.web.readers import Readers

MOST_MESSAGES: Final = 1024  # that wait for one reader
MOST_BYTES: Final = 1 << 20  # of messages that wait for one reader
ON_THE_WIRE: Final = 64 * 1024  # bytes that the kernel may lag behind before messages wait here

_HEADERS: Final = (
    (b"Content-Type", b"text/event-stream"),
    (b"Cache-Control", b"no-cache"),
    NO_SNIFFING,
    UNBUFFERED,
)


class Events:
    """Serves the event stream.

    Args:
        readers: counts those who read it.
    """

    def __init__(self, bulletin: Bulletin, readers: Readers | None = None) -> None:
        self._bulletin = bulletin
        self._readers = readers or Readers()
        self._open: dict[Reader, Callable[[], None]] = {}

    def stream(self, exchange: Exchange) -> None:
        """Answer `GET /api/events` until the client leaves or the streams are ended; HEAD ends at once.

        Raises:
            TooManyReaders: there are enough already.
        """
        stream = self._readers.begin(exchange, _HEADERS)
        if stream is None:
            return
        reader = Reader(stream, self._bulletin.current, exchange.client_host)
        exchange.on_drain = reader.drained
        self._open[reader] = self._bulletin.listen(reader.tell)
        exchange.when_gone(lambda: self._close(reader))

    def end_streams(self) -> None:
        """Finish every stream: the service stops, or another configuration takes over."""
        for reader in tuple(self._open):
            self._close(reader)
            reader.finish()

    def _close(self, reader: Reader) -> None:
        stop = self._open.pop(reader, None)
        if stop is not None:
            self._readers.go()
            stop()


class Reader:
    """One client of the stream, and what it has not read yet.

    One that lags too far behind loses messages, never holds anybody up, and is told the state of things anew
    once it has caught up.

    Args:
        current: what is true now, as messages.
        who: for the log.
    """

    _log = Logger()

    def __init__(self, stream: ResponseStream, current: Callable[[], Sequence[bytes]], who: str) -> None:
        self._stream = stream
        self._current = current
        self._who = who
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._missed = 0  # since it last caught up
        self.lost = 0  # in all

    def tell(self, message: bytes) -> None:
        """Send a message, keep it until there is room, or lose it."""
        if not self._waiting and not self._missed and self._stream.buffered <= ON_THE_WIRE:
            self._stream.write(message)
        elif len(self._waiting) < MOST_MESSAGES and self._waiting_bytes + len(message) <= MOST_BYTES:
            self._waiting.append(message)
            self._waiting_bytes += len(message)
        else:
            self._lose()

    def drained(self) -> None:
        """The client has read something."""
        while self._waiting and self._stream.buffered <= ON_THE_WIRE:
            message = self._waiting.popleft()
            self._waiting_bytes -= len(message)
            self._stream.write(message)
        if self._missed and not self._waiting and self._stream.buffered <= ON_THE_WIRE:
            self._missed = 0
            self._stream.write(b"".join(self._current()))

    def finish(self) -> None:
        """End the stream."""
        self._waiting.clear()
        self._waiting_bytes = 0
        self._stream.finish()

    def _lose(self) -> None:
        first = not self.lost
        self._missed += 1
        self.lost += 1
        if first:
            self._log.warn(
                "events.reader_lags client={client} waiting={waiting}",
                client=self._who,
                waiting=len(self._waiting),
            )


def model_rows(config: Config, states: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
    """Return what a `modelStatus` event lists: local models by id, unlisted ones too, then those of peers."""
    rows: list[Mapping[str, Any]] = []
    for model in config.models.values():
        row: dict[str, Any] = {
            "id": model.id,
            "name": model.name,
            "description": model.description,
            "state": states.get(model.id, "stopped"),
            "unlisted": model.unlisted,
            "peerID": "",
        }
        if model.aliases:
            row["aliases"] = list(model.aliases)
        record = model_record(model, loaded=False, now=0)
        row.update({key: record[key] for key in ("capabilities", "context_length") if key in record})
        rows.append(row)
    peers = [(f"{peer.id}/{model}", peer.id) for peer in config.peers.values() for model in peer.models]
    return rows + [_peer_row(name, peer) for name, peer in sorted(peers)]


def _peer_row(name: str, peer: str) -> Mapping[str, Any]:
    return {"id": name, "name": "", "description": "", "state": "", "unlisted": False, "peerID": peer}
