"""What becomes of one call, collected while it happens; in the end it is a row."""

from __future__ import annotations

from llamaswap.activity.record import ABORTED, Activity
from llamaswap.dispatch import Abandoned, Lease
from llamaswap.errors import Refusal
from llamaswap.http1.heads import ResponseHead
from llamaswap.metering.meter import Meter
from llamaswap.metering.usage import Usage
from llamaswap.scheduling.vocabulary import Band, Verdict

SCORED = "serial_score"
"""The key whose presence tells that `serial` decided; llama-swap's own rows know no failed loads."""


class Visit:
    """One call between its arrival and its row.

    Args:
        model: the real id, or the requested text if there is no such model.
        req_path: as the upstream sees it, without the query.
        began: seconds on the clock.
    """

    def __init__(self, *, model: str, req_path: str, began: float) -> None:
        self.model = model
        self.req_path = req_path
        self.began = began
        self.meter = Meter(req_path=req_path)
        self._metadata: dict[str, str] = {}
        self._verdict: Verdict | None = None  # of a ticket that is dispatched and has no lease yet
        self._dispatched = 0.0
        self._status = 500
        self._content_type = ""
        self._error = ""
        self._metered = False

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
        self._metered = True

    def refused(self, refusal: Refusal, content_type: str) -> None:
        """We answered with an error, in a shape that the client likes."""
        self.failed(refusal.status, refusal.message)
        self._content_type = content_type

    def failed(self, status: int, error: str) -> None:
        """There was no answer of an upstream."""
        self._status = status
        self._error = error

    def abandoned(self, gone: Abandoned, band: Band) -> None:
        """The client left before the call held a lease."""
        if gone.verdict is None:
            self._metadata.update(
                serial_priority=str(gone.ticket.priority),
                serial_band=band.value,
                serial_queue_wait_ms=str(int(gone.waited * 1000)),
            )
            self.failed(ABORTED, f"abandoned by its client while queued, after {gone.waited:.1f} s")
        else:
            self.failed(ABORTED, "abandoned by its client while its model was loading")

    def activity(self, *, lasted: float, ended: float) -> Activity:
        """Return the finished row.

        Args:
            lasted: seconds from arrival to the end.
            ended: unix seconds.
        """
        if self._verdict is not None and SCORED in self._verdict.metadata:
            self._note(self._verdict, self.began + lasted - self._dispatched)
        usage, error = Usage(), self._error
        if self._metered:
            metered = self.meter.finish()
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
