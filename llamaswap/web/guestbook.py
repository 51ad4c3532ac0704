"""Who comes and who leaves: the list of requests in flight, the row, the capture, the counters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from llamaswap.activity.journal import Journal
from llamaswap.http1.exchange import Exchange
from llamaswap.metering.capture import Capture
from llamaswap.metering.captures import Captures
from llamaswap.telemetry.inflight import InFlight
from llamaswap.telemetry.loglines import one_line
from llamaswap.telemetry.metrics import Metrics
from llamaswap.web.visit import Visit
from llamaswap.web.witness import Witness


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
        head, row = exchange.head, guest.row
        path = guest.target.partition(b"?")[0].decode("utf-8", "replace")
        flight = None
        if guest.listed:
            flight = self._inflight.enter(
                model=guest.name,
                req_path=_shown_path(head.path, path),
                head=head,
                client_host=exchange.client_host,
                arrived=exchange.received,
                cancel=cancel,
            )
        return Visit(
            model=guest.name,
            req_path=path,
            began=exchange.received,
            row=row,
            selector=guest.selector,
            flight=flight,
            witness=Witness(
                path, metered=row, asked=head, most=self._captures.largest_raw if row else 0, flight=flight
            ),
            keep=self._keep,
        )

    def farewell(self, visit: Visit) -> None:
        """A call is over: count it, and have its row written when there is time."""
        visit.ends(lasted=self._clock.seconds() - visit.began, ended=self._wall())
        self._metrics.answered(visit.model, visit.status)
        if not visit.went_well:
            self._tell(visit)
        if visit.row:
            self._journal.leave(visit)

    def _tell(self, visit: Visit) -> None:
        activity = visit.activity()
        if activity.error_msg:  # what went well is in the access log
            self._log.info(
                "inference.failed model={model} path={path} status={status} ms={ms} error={error}",
                model=one_line(activity.model),
                path=one_line(activity.req_path),
                status=activity.resp_status_code,
                ms=activity.duration_ms,
                error=one_line(activity.error_msg),
            )

    def _keep(self, row_id: int, capture: Capture) -> None:
        packing = self._captures.lay_by(row_id, capture)
        if packing is None:
            self._kept(row_id, good=self._captures.keep(row_id, capture))
        else:
            # A megabyte takes milliseconds, in which a token of somebody else would wait.
            work = self._journal.aside(packing)
            work.addCallback(lambda packed: self._kept(row_id, good=self._captures.packed(row_id, packed)))
            work.addErrback(lambda _closed: self._captures.packed(row_id, None))

    def _kept(self, row_id: int, *, good: bool) -> None:
        if not good:
            self._log.warn("captures.too_large row={row}", row=row_id)


def _shown_path(received: bytes, path: str) -> str:
    """Return the path that the list of requests in flight shows: as it was asked for, but for `/upstream`."""
    return path if received.startswith(b"/upstream/") else received.decode("utf-8", "replace")
