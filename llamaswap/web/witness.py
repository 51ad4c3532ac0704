"""Who sees an answer in passing: the meter, the capture and the list of requests in flight."""

from __future__ import annotations

from collections.abc import Callable

from llamaswap.http1.crossing import replaced
from llamaswap.http1.heads import ResponseHead, end_to_end
from llamaswap.metering.capture import Recording
from llamaswap.metering.headers import Headers
from llamaswap.metering.meter import Meter
from llamaswap.proxying.local import text, unbuffered
from llamaswap.telemetry.inflight import Flight


class Witness:
    """An observer of one relayed response (`llamaswap.http1.relay.Observer`).

    Args:
        meter: None on routes that are not metered.
        recording: None where nothing is captured.
        flight: None for requests that are not listed.
    """

    __slots__ = ("_flight", "_meter", "_recording", "data")

    def __init__(self, meter: Meter | None, recording: Recording | None, flight: Flight | None) -> None:
        self._meter = meter
        self._recording = recording
        self._flight = flight
        # A chunk costs one call for each who looks, and none for the others.
        self.data = _together([one.feed for one in (meter, recording) if one], flight)

    def head(self, head: ResponseHead) -> None:
        """The final head, as the upstream sent it."""
        if self._meter is not None:
            self._meter.begin(
                status=head.status,
                content_type=text(head.get(b"content-type")),
                content_encoding=text(head.get(b"content-encoding")),
            )
        if self._recording is None and self._flight is None:
            return
        shown = tuple(replaced(list(end_to_end(head.headers)), unbuffered(head)))
        if self._recording is not None:
            self._recording.begin(status=head.status, headers=shown)
        if self._flight is not None:
            self._flight.answered(shown)

    def refused(self, status: int, headers: Headers) -> None:
        """We answer ourselves."""
        if self._recording is not None:
            self._recording.begin(status=status, headers=headers)
        if self._flight is not None:
            self._flight.answered(headers)


def _together(feeds: list[Callable[[bytes], None]], flight: Flight | None) -> Callable[[bytes], None]:
    if flight is not None:
        feeds.append(flight.passed)
    if len(feeds) == 1:
        return feeds[0]

    def feed_all(data: bytes) -> None:
        for feed in feeds:
            feed(data)

    return feed_all
