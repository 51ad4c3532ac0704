"""What becomes of one call, collected while it happens; in the end it is a row, and perhaps a capture."""

from __future__ import annotations

from collections.abc import Iterable

from llamaswap.activity.record import ABORTED, Activity
from llamaswap.errors import Refusal, Rendered
from llamaswap.http1.heads import ResponseHead
from llamaswap.leases import Abandoned, Lease
from llamaswap.metering.capture import Capture, Recording
from llamaswap.metering.failures import failure_text
from llamaswap.metering.meter import Meter
from llamaswap.metering.usage import Usage
from llamaswap.scheduling.vocabulary import Verdict
from llamaswap.telemetry.inflight import Flight
from llamaswap.web.witness import Witness

SCORED = "serial_score"
"""The key whose presence tells that `serial` decided; llama-swap's own rows know no failed loads."""


class Visit:
    """One call between its arrival and its row.

    Args:
        model: the real id, or the requested text if there is no such model.
        req_path: as the upstream sees it, without the query.
        began: seconds on the clock.
        row: whether it belongs into the activity log; only then it is metered.
        recording: collects a capture; None where nothing is captured.
        flight: its entry among the requests in flight; None where it has none.
        selector: the selector that chose the model, '' for none.
    """

    def __init__(
        self,
        *,
        model: str,
        req_path: str,
        began: float,
        row: bool = True,
        recording: Recording | None = None,
        flight: Flight | None = None,
        selector: str = "",
    ) -> None:
        self.model = model
        self.req_path = req_path
        self.began = began
        self.row = row
        self._meter = Meter(req_path=req_path) if row else None
        self._recording = recording
        self._flight = flight
        self.witness = Witness(self._meter, recording, flight)
        self._metadata: dict[str, str] = {"selector": selector} if selector else {}
        self._verdict: Verdict | None = None  # of a ticket that is dispatched and has no lease yet
        self._dispatched = 0.0
        self._status = 500
        self._content_type = ""
        self._error = ""
        self._metered = False

    def sent(self, body: Iterable[bytes]) -> None:
        """This is the body that the upstream gets."""
        if self._recording is not None:
            self._recording.sent(body)

    def dispatched(self, verdict: Verdict, now: float) -> None:
        """The call has left the queue; a load may follow, well or not."""
        self._verdict = verdict
        self._dispatched = now

    def leased(self, lease: Lease) -> None:
        """The call holds a lease: note why it went when it did."""
        self._verdict = None
        if lease.verdict is not None:
            self._note(lease.verdict, lease.load)

    def answered(self, head: ResponseHead, error: str) -> None:
        """The upstream's response has ended, well ('') or not."""
        self._status = head.status
        self._content_type = (head.get(b"content-type") or b"").decode("latin-1")
        self._error = error
        self._metered = self._meter is not None

    def refused(self, refusal: Refusal, answer: Rendered) -> None:
        """We answered with an error; the row says what a client could read of it, as for an upstream's."""
        self.witness.refused(answer.status, answer.headers)
        shown = failure_text(answer.status, answer.body) if answer.body else refusal.message
        self.failed(refusal.status, shown)
        self._content_type = dict(answer.headers).get(b"Content-Type", b"").decode("latin-1")

    def failed(self, status: int, error: str) -> None:
        """There was no answer of an upstream."""
        self._status = status
        self._error = error

    def abandoned(self, gone: Abandoned, why: str) -> None:
        """The call ended before it held a lease.

        Args:
            why: who ended it, such as "abandoned by its client".
        """
        if gone.verdict is None:
            self._metadata.update(gone.metadata)
            self.failed(ABORTED, f"{why} while queued, after {gone.waited:.1f} s")
        else:
            self.failed(ABORTED, f"{why} while its model was loading")

    def over(self) -> None:
        """The call is no longer in flight."""
        if self._flight is not None:
            self._flight.left()

    def capture(self) -> Capture | None:
        """Return what was captured, if anything was."""
        if self._recording is None:
            return None
        return self._recording.finish(broke_off=bool(self._error))

    def activity(self, *, lasted: float, ended: float) -> Activity:
        """Return the finished row.

        Args:
            lasted: seconds from arrival to the end.
            ended: unix seconds.
        """
        if self._verdict is not None and SCORED in self._verdict.metadata:
            self._note(self._verdict, self.began + lasted - self._dispatched)
        usage, error = Usage(), self._error
        if self._metered and self._meter is not None:
            metered = self._meter.finish()
            usage, error = metered.usage, self._error or metered.error
        return Activity(
            ended=ended,
            model=self.model,
            req_path=self.req_path,
            resp_content_type=self._content_type,
            resp_status_code=self._status,
            usage=usage,
            duration_ms=int(lasted * 1000),
            error_msg=error,
            metadata=self._metadata,
        )

    def _note(self, verdict: Verdict, load: float) -> None:
        self._metadata.update(verdict.metadata)
        if SCORED in verdict.metadata:
            self._metadata["serial_load_ms"] = str(int(load * 1000))
