"""`/logs` and `/logs/stream`: what was said so far, and what is said from now on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from urllib.parse import unquote_to_bytes

from typing_extensions import override

from llamaswap.calls.catalog import Catalog
from llamaswap.errors import BadRequest, Header
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.heads import RequestHead
from llamaswap.http1.stream import ResponseStream
from llamaswap.processes.logbook import Logbook
from llamaswap.telemetry.loglines import Logbooks
from llamaswap.web.answers import NO_SNIFFING, UNBUFFERED, redirect
from llamaswap.web.readers import Readers

PLAIN = (b"Content-Type", b"text/plain")

_STREAM_HEADERS = (PLAIN, NO_SNIFFING, UNBUFFERED, (b"Cache-Control", b"no-cache"))

MAX_UNREAD_BYTES = 1 << 20
"""A reader that is further behind than this misses what comes until it has caught up."""


class UnknownLog(BadRequest):
    """There is no log of this name."""

    def __init__(self) -> None:
        super().__init__("invalid logger. Use 'proxy', 'upstream' or a model's ID")

    @override
    def headers(self) -> tuple[Header, ...]:
        """Look like the stream that was asked for, as in llama-swap."""
        return (NO_SNIFFING, UNBUFFERED)


class Logs:
    """Shows the logbooks.

    Args:
        books: the service's own ones.
        of_model: one per local model.
        readers: counts those who read a stream.
    """

    def __init__(
        self,
        books: Logbooks,
        of_model: Mapping[str, Logbook],
        catalog: Catalog,
        readers: Readers | None = None,
    ) -> None:
        self._books = books
        self._of_model = of_model
        self._catalog = catalog
        self._readers = readers or Readers()
        self._streams: dict[ResponseStream, Callable[[], None]] = {}  # and how each is unsubscribed

    def history(self, exchange: Exchange) -> None:
        """Answer `/logs`; browsers are sent to the page."""
        if b"text/html" in (exchange.head.get(b"accept") or b""):
            redirect(exchange, 302, b"/ui/")
        else:
            exchange.respond(200, self._books.combined.history(), headers=(PLAIN,))

    def stream(self, exchange: Exchange, rest: bytes) -> None:
        """Answer `/logs/stream/<rest>` until the client leaves or the streams are ended; HEAD ends at once.

        Raises:
            UnknownLog: there is no such log.
            TooManyReaders: there are enough already.
        """
        book = self._find(unquote_to_bytes(rest).decode("utf-8", "replace"))
        stream = self._readers.begin(exchange, _STREAM_HEADERS)
        if stream is None:
            return
        if not _without_history(exchange.head):
            stream.write(book.history())
        self._streams[stream] = book.subscribe(partial(_write_if_read, stream))
        exchange.when_gone(partial(self._forget, stream))

    def end_streams(self) -> None:
        """Finish every stream: the service stops."""
        for stream in tuple(self._streams):
            self._forget(stream)
            stream.finish()

    def _forget(self, stream: ResponseStream) -> None:
        unsubscribe = self._streams.pop(stream, None)
        if unsubscribe is not None:
            self._readers.go()
            unsubscribe()

    def _find(self, name: str) -> Logbook:
        own = {"": self._books.combined, "proxy": self._books.proxy, "upstream": self._books.upstream}
        if name in own:
            return own[name]
        found = self._catalog.find_in_path(name)
        if found is None:
            raise UnknownLog
        return self._of_model[found.id]


def _write_if_read(stream: ResponseStream, data: bytes) -> None:
    if stream.buffered <= MAX_UNREAD_BYTES:
        stream.write(data)


def _without_history(head: RequestHead) -> bool:
    return any(pair.partition(b"=")[0] == b"no-history" for pair in (head.query or b"").split(b"&"))
