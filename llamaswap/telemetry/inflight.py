"""The requests that are under way: who asks for what, and how much has come back.

Nothing is worked out before somebody wants to see it; what has grown is told by one clock for all, which
ticks while somebody watches.  Knows neither how events travel nor how a request is served.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from llamaswap.http1.heads import RequestHead
from llamaswap.metering.headers import Headers, shown_headers
from llamaswap.telemetry.stamps import microseconds, write_moment

EVERY: Final = 0.25  # seconds between two reports of a request whose bytes flow

Watcher = Callable[[Mapping[str, Any]], None]
"""Takes one change, as the `data` of an `inflight` event."""


class Progress(Protocol):
    """How far the answer to a request is."""

    @property
    def passed_bytes(self) -> int:
        """Of the body, as they came from the upstream."""

    def resp_headers(self) -> Headers:
        """The fields that the client got, () before."""


class _NoProgress:
    passed_bytes = 0

    def resp_headers(self) -> Headers:
        return ()


_NO_PROGRESS: Final = _NoProgress()


class Flight:
    """One request under way.  Made by `InFlight.enter`; whoever serves the request feeds it."""

    __slots__ = (
        "_at_us",
        "_board",
        "_cancel",
        "_client_host",
        "_head",
        "_progress",
        "arrived",
        "model",
        "number",
        "req_path",
        "told_bytes",
    )

    def __init__(
        self,
        board: InFlight,
        number: int,
        model: str,
        req_path: str,
        head: RequestHead,
        client_host: str,
        arrived: float,
        cancel: Callable[[], None],
    ) -> None:
        self.number = number
        self.model = model
        self.req_path = req_path
        self.arrived = arrived  # seconds on the clock
        self.told_bytes = 0  # what the watcher knows of those that passed
        self._board = board
        self._head = head
        self._client_host = client_host
        self._progress: Progress = _NO_PROGRESS
        self._cancel = cancel
        self._at_us = -1  # when it arrived, in unix microseconds; below 0 until somebody asks

    @property
    def id(self) -> str:
        """What it is called by whoever wants to cancel it."""
        return str(self.number)

    @property
    def head(self) -> RequestHead:
        """The client's, with its credentials."""
        return self._head

    @property
    def resp_bytes(self) -> int:
        """How much of the body has come from the upstream."""
        return self._progress.passed_bytes

    def follow(self, progress: Progress) -> None:
        """Show how far the answer is, as `progress` has it, from now until `left`."""
        self._progress = progress

    def answered(self) -> None:
        """The head of the response is on its way."""
        self._board.changed(self)

    def left(self) -> None:
        """The request is over; calling it again does nothing."""
        self._board.forget(self)
        self._progress = _NO_PROGRESS  # which may hold this flight: a cycle would be left to the collector

    def cancel(self) -> None:
        """End the request, by the callback that was given for it."""
        self._cancel()

    def show(self, now: float, wall: float) -> dict[str, Any]:
        """Return the request as events show it.

        Args:
            now: seconds on the clock.
            wall: the same moment in unix seconds.
        """
        elapsed = max(0.0, now - self.arrived)
        if self._at_us < 0:
            self._at_us = microseconds(wall - elapsed)
        return {
            "id": self.id,
            "timestamp": write_moment(self._at_us),
            "model": self.model,
            "req_path": self.req_path,
            "method": self._head.method.decode("latin-1"),
            "req_headers": shown_headers(self._head.headers),
            "remote_ip": remote_ip(self._head, self._client_host),
            "resp_headers": shown_headers(self._progress.resp_headers()),
            "resp_bytes": self.resp_bytes,
            "elapsed_ms": int(elapsed * 1000),
        }


class InFlight:
    """All requests under way.

    Args:
        clock: measures, and ticks while somebody watches and something is under way.
        wall: unix seconds.
    """

    def __init__(self, clock: IReactorTime, wall: Callable[[], float]) -> None:
        self._clock = clock
        self._wall = wall
        self._flights: dict[int, Flight] = {}
        self._entered = 0
        self._watcher: Watcher | None = None
        self._tick: IDelayedCall | None = None

    def __len__(self) -> int:
        """How many are under way."""
        return len(self._flights)

    def enter(
        self,
        *,
        model: str,
        req_path: str,
        head: RequestHead,
        client_host: str,
        arrived: float,
        cancel: Callable[[], None],
    ) -> Flight:
        """Take a request up; its `Flight.left` must be called, whatever happens to it.

        Args:
            head: the client's; kept, and shown without credentials.
            client_host: the peer's address; the head may know better.
            arrived: seconds on the clock.
            cancel: ends the request; called at most once per `cancel` of its id.
        """
        self._entered = number = self._entered + 1
        flight = Flight(self, number, model, req_path, head, client_host, arrived, cancel)
        self._flights[number] = flight
        if self._watcher is not None:
            self.changed(flight)
            self._tick_on()
        return flight

    def cancel(self, request_id: str, check: Callable[[RequestHead], None] | None = None) -> bool:
        """Cancel a request; False when there is none of that id.

        Args:
            check: is shown the head of the request, and raises if whoever asks may not cancel it.
        """
        for flight in self._flights.values():
            if flight.id == request_id:
                if check is not None:
                    check(flight.head)
                flight.cancel()
                return True
        return False

    def cancel_all(self) -> None:
        """Cancel whatever is still under way: nobody will be there to see its end."""
        for flight in tuple(self._flights.values()):
            flight.cancel()

    def snapshot(self) -> dict[str, Any]:
        """Return all of them as the `data` of an event, in the order of their arrival."""
        now, wall = self._clock.seconds(), self._wall()
        flights = sorted(self._flights.values(), key=lambda flight: (flight.arrived, flight.number))
        return {"operation": "snapshot", "requests": [flight.show(now, wall) for flight in flights]}

    def watch(self, watcher: Watcher) -> None:
        """Tell `watcher` every change from now on; there is one watcher at a time."""
        self._watcher = watcher
        self._tick_on()

    def unwatch(self) -> None:
        """Tell nobody any more; no timer is left."""
        self._watcher = None
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None

    def changed(self, flight: Flight) -> None:
        """Tell how a request looks now; called by the request."""
        if self._watcher is not None and flight.number in self._flights:
            flight.told_bytes = flight.resp_bytes
            shown = flight.show(self._clock.seconds(), self._wall())
            self._watcher({"operation": "upsert", "request": shown})

    def forget(self, flight: Flight) -> None:
        """A request is over; called by the request."""
        if self._flights.pop(flight.number, None) is not None and self._watcher is not None:
            self._watcher({"operation": "remove", "id": flight.id})

    def _tick_on(self) -> None:
        if self._watcher is not None and self._flights and self._tick is None:
            self._tick = self._clock.callLater(EVERY, self._report)

    def _report(self) -> None:
        self._tick = None
        for flight in tuple(self._flights.values()):
            if flight.resp_bytes != flight.told_bytes:
                self.changed(flight)
        self._tick_on()


def remote_ip(head: RequestHead, client_host: str) -> str:
    """Return who asks: the first of X-Forwarded-For, else X-Real-IP, else the peer.

    Only for showing: a client may claim to be anybody.
    """
    hop = (head.get(b"x-forwarded-for") or b"").partition(b",")[0].strip()
    return (hop or (head.get(b"x-real-ip") or b"").strip()).decode("latin-1") or client_host
