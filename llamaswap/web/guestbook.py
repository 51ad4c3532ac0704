"""Who comes and who leaves: the list of requests in flight, the row, the capture, the counters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from llamaswap.activity.journal import Journal
from llamaswap.http1.exchange import Exchange
from llamaswap.metering.capture import Capture, Recording
from llamaswap.metering.captures import Captures
from llamaswap.telemetry.inflight import InFlight
from llamaswap.telemetry.metrics import Metrics
from llamaswap.web.visit import Visit


class Guest(Protocol):
    """What has to be known of a call to receive it."""

    @property
    def name(self) -> str:
        """The model, for the row."""

    @property
    def target(self) -> bytes:
        """Path and query as the upstream sees them, escaped."""

    @property
    def row(self) -> bool:
        """Whether it belongs into the activity log."""

    @property
    def listed(self) -> bool:
        """Whether it belongs into the list of requests in flight."""

    @property
    def selector(self) -> str:
        """What chose the model, '' for nothing."""


class GuestBook:
    """Receives calls and keeps what is left of them.

    Args:
        clock: measures; monotonic in the daemon.
        wall: unix seconds.
    """

    _log = Logger()

    def __init__(
        self,
        *,
        journal: Journal,
        captures: Captures,
        inflight: InFlight,
        metrics: Metrics,
        clock: IReactorTime,
        wall: Callable[[], float],
    ) -> None:
        self._journal = journal
        self._captures = captures
        self._inflight = inflight
        self._metrics = metrics
        self._clock = clock
        self._wall = wall

    def welcome(self, exchange: Exchange, guest: Guest, *, cancel: Callable[[], None]) -> Visit:
        """Take a call up.

        Args:
            cancel: ends it, whatever it waits for.
        """
        head = exchange.head
        path = guest.target.partition(b"?")[0].decode("utf-8", "replace")
        flight = recording = None
        if guest.listed:
            flight = self._inflight.enter(
                model=guest.name,
                req_path=_shown_path(head.path, path),
                method=head.method.decode("latin-1"),
                headers=head.headers,
                client_host=exchange.client_host,
                arrived=exchange.received,
                cancel=cancel,
            )
        if guest.row and self._captures.enabled:
            most = self._captures.largest_raw
            recording = Recording(req_path=path, req_headers=head.headers, most=most)
        return Visit(
            model=guest.name,
            req_path=path,
            began=exchange.received,
            row=guest.row,
            recording=recording,
            flight=flight,
            selector=guest.selector,
        )

    def farewell(self, visit: Visit) -> None:
        """A call is over: count it, and leave its row."""
        activity = visit.activity(lasted=self._clock.seconds() - visit.began, ended=self._wall())
        self._metrics.answered(activity.model, activity.resp_status_code)
        if activity.error_msg:  # what went well is in the access log
            self._log.info(
                "inference.failed model={model} path={path} status={status} ms={ms} error={error}",
                model=activity.model,
                path=activity.req_path,
                status=activity.resp_status_code,
                ms=activity.duration_ms,
                error=activity.error_msg,
            )
        if visit.row:
            self._journal.write(activity, partial(self._stored, visit.capture()))

    def _stored(self, capture: Capture | None, row_id: int) -> None:
        if capture is not None and not self._captures.keep(row_id, capture):
            self._log.warn("captures.too_large row={row}", row=row_id)


def _shown_path(received: bytes, path: str) -> str:
    """Return the path that the list of requests in flight shows: as it was asked for, but for `/upstream`."""
    return path if received.startswith(b"/upstream/") else received.decode("utf-8", "replace")
