"""The requests that are under way: who asks for what, and how much has come back.

A request's bytes are only added up; what has grown is told by one clock for all, which ticks while somebody
watches.  Knows neither how events travel nor how a request is served.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from llamaswap.metering.headers import Headers, shown_headers
from llamaswap.telemetry.stamps import microseconds, write_moment

EVERY: Final = 0.25  # seconds between two reports of a request whose bytes flow

Watcher = Callable[[Mapping[str, Any]], None]
"""Takes one change, as the `data` of an `inflight` event."""


class Flight:
    """One request under way.  Made by `InFlight.enter`; whoever serves the request feeds it."""

    __slots__ = (
        "_board",
        "_cancel",
        "_headers",
        "_metadata",
        "_resp_headers",
        "arrived",
        "at_us",
        "id",
        "method",
        "model",
        "remote_ip",
        "req_path",
        "resp_bytes",
        "told_bytes",
    )

    def __init__(
        self,
        board: InFlight,
        number: int,
        *,
        model: str,
        req_path: str,
        method: str,
        headers: Headers,
        remote_ip: str,
        arrived: float,
        at_us: int,
        cancel: Callable[[], None],
        metadata: Mapping[str, str] | None,
    ) -> None:
        self.id = str(number)
        self.model = model
        self.req_path = req_path
        self.method = method
        self.remote_ip = remote_ip
        self.arrived = arrived  # seconds on the clock
        self.at_us = at_us  # the same moment in unix microseconds
        self.resp_bytes = 0  # of the body, as they came from the upstream
        self.told_bytes = 0  # what the watcher knows of them
        self._board = board
        self._headers = headers
        self._resp_headers: Headers = ()
        self._cancel = cancel
        self._metadata = metadata

    def answered(self, headers: Headers) -> None:
        """The head of the response, as the client gets it, is on its way."""
        self._resp_headers = headers
        self._board.changed(self)

    def passed(self, data: bytes) -> None:
        """Body bytes go by; called for each chunk, so it does nothing but add."""
        self.resp_bytes += len(data)

    def left(self) -> None:
        """The request is over; calling it again does nothing."""
        self._board.forget(self)

    def cancel(self) -> None:
        """End the request, by the callback that was given for it."""
        self._cancel()

    def show(self, now: float) -> dict[str, Any]:
        """Return the request as events show it.

        Args:
            now: seconds on the clock.
        """
        shown: dict[str, Any] = {
            "id": self.id,
            "timestamp": write_moment(self.at_us),
            "model": self.model,
            "req_path": self.req_path,
            "method": self.method,
            "req_headers": shown_headers(self._headers),
            "remote_ip": self.remote_ip,
            "resp_headers": shown_headers(self._resp_headers),
            "resp_bytes": self.resp_bytes,
            "elapsed_ms": int(max(0.0, now - self.arrived) * 1000),
        }
        if self._metadata:
            shown["metadata"] = dict(self._metadata)
        return shown


class InFlight:
    """All requests under way.

    Args:
        clock: measures, and ticks while somebody watches and something is under way.
        wall: unix seconds.
    """

    def __init__(self, clock: IReactorTime, wall: Callable[[], float]) -> None:
        self._clock = clock
        self._wall = wall
        self._flights: dict[str, Flight] = {}
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
        method: str,
        headers: Headers,
        client_host: str,
        arrived: float,
        cancel: Callable[[], None],
        metadata: Mapping[str, str] | None = None,
    ) -> Flight:
        """Take a request up; its `Flight.left` must be called, whatever happens to it.

        Args:
            headers: the client's; kept, and shown without credentials.
            client_host: the peer's address; the headers may know better.
            arrived: seconds on the clock.
            cancel: ends the request; called at most once per `cancel` of its id.
        """
        self._entered += 1
        flight = Flight(
            self,
            self._entered,
            model=model,
            req_path=req_path,
            method=method,
            headers=headers,
            remote_ip=remote_ip(headers, client_host),
            arrived=arrived,
            at_us=microseconds(self._wall() - max(0.0, self._clock.seconds() - arrived)),
            cancel=cancel,
            metadata=metadata,
        )
        self._flights[flight.id] = flight
        self.changed(flight)
        self._tick_on()
        return flight

    def cancel(self, request_id: str) -> bool:
        """Cancel a request; False when there is none of that id."""
        flight = self._flights.get(request_id)
        if flight is None:
            return False
        flight.cancel()
        return True

    def snapshot(self) -> dict[str, Any]:
        """Return all of them as the `data` of an event, in the order of their arrival."""
        now = self._clock.seconds()
        flights = sorted(self._flights.values(), key=lambda flight: (flight.at_us, int(flight.id)))
        return {"operation": "snapshot", "requests": [flight.show(now) for flight in flights]}

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
        if self._watcher is not None and flight.id in self._flights:
            flight.told_bytes = flight.resp_bytes
            self._watcher({"operation": "upsert", "request": flight.show(self._clock.seconds())})

    def forget(self, flight: Flight) -> None:
        """A request is over; called by the request."""
        if self._flights.pop(flight.id, None) is not None and self._watcher is not None:
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


def remote_ip(headers: Headers, client_host: str) -> str:
    """Return who asks: the first of X-Forwarded-For, else X-Real-IP, else the peer.

    Only for showing: a client may claim to be anybody.
    """
    claimed: dict[bytes, bytes] = {}
    for name, value in headers:
        claimed.setdefault(name.lower(), value)
    hop = claimed.get(b"x-forwarded-for", b"").partition(b",")[0].strip()
    return (hop or claimed.get(b"x-real-ip", b"").strip()).decode("latin-1") or client_host
