"""What becomes of one call, collected while it happens; in the end it is a row, and perhaps a capture.

While the call is under way things are only noted.  What they come to is worked out when the row is written,
which is after its client has everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from llamaswap.activity.record import ABORTED, Activity
from llamaswap.errors import Refusal
from llamaswap.http1.heads import ResponseHead
from llamaswap.leases import Abandoned, Lease
from llamaswap.metering.capture import Capture
from llamaswap.metering.failures import failure_text
from llamaswap.metering.meter import FAILURES
from llamaswap.metering.usage import NOTHING
from llamaswap.rendering import Rendered
from llamaswap.scheduling.vocabulary import Verdict
from llamaswap.telemetry.inflight import Flight
from llamaswap.web.witness import Witness, described

Keep = Callable[[int, Capture], None]
"""Takes what was captured, with the id of its row."""


class Visit:
    """One call between its arrival and its row (`llamaswap.activity.backlog.Entry`).

    Args:
        model: the real id, or the requested text if there is no such model.
        req_path: as the upstream sees it, without the query.
        began: seconds on the clock.
        row: whether it belongs into the activity log; only then it is metered.
        selector: the selector that chose the model, '' for none.
        flight: its entry among the requests in flight; None where it has none.
        witness: sees its answer; None makes one that captures nothing.
        keep: gets the capture, if there is one.
    """

    __slots__ = (
        "_activity",
        "_content_type",
        "_dispatched",
        "_ended",
        "_error",
        "_flight",
        "_head",
        "_keep",
        "_lasted",
        "_load",
        "_noted",
        "_selector",
        "began",
        "caller",
        "model",
        "req_path",
        "row",
        "status",
        "verdict",
        "witness",
    )

    def __init__(
        self,
        *,
        model: str,
        req_path: str,
        began: float,
        row: bool = True,
        selector: str = "",
        flight: Flight | None = None,
        witness: Witness | None = None,
        keep: Keep | None = None,
    ) -> None:
        self.model = model
        self.req_path = req_path
        self.began = began
        self.row = row
        self.status = 500
        self.caller = ""  # who asks, if that is anybody in particular
        self.verdict: Verdict | None = None  # as soon as the call has left the queue
        self.witness = Witness(req_path, metered=row, flight=flight) if witness is None else witness
        self._selector = selector
        self._flight = flight
        self._keep = keep
        self._dispatched = 0.0  # seconds on the clock
        self._load = -1.0  # seconds; below 0 as long as there is no lease
        self._noted: Mapping[str, str] | None = None  # of a ticket that was never dispatched
        self._head: ResponseHead | None = None  # of an upstream's answer
        self._content_type = ""  # of our own answer
        self._error = ""
        self._lasted = self._ended = 0.0
        self._activity: Activity | None = None

    def sent(self, body: Iterable[bytes]) -> None:
        """This is the body that the upstream gets."""
        self.witness.sent(tuple(body))

    def dispatched(self, verdict: Verdict, now: float) -> None:
        """The call has left the queue; a load may follow, well or not."""
        self.verdict = verdict
        self._dispatched = now

    def leased(self, lease: Lease) -> None:
        """The call holds a lease: note why it went when it did."""
        self.verdict = lease.verdict
        self._load = lease.load

    def load(self, now: float) -> float:
        """Return how many seconds its load took, or has taken by now, of a call that has left the queue."""
        return self._load if self._load >= 0 else now - self._dispatched

    def answered(self, head: ResponseHead, error: str) -> None:
        """The upstream's response has ended, well ('') or not."""
        self.status = head.status
        self._head = head
        self._error = error

    def refused(self, refusal: Refusal, answer: Rendered) -> None:
        """We answered with an error; the row says what a client could read of it, as for an upstream's."""
        self.witness.refused(answer.status, answer.headers)
        shown = failure_text(answer.status, answer.body) if answer.body else refusal.message
        self.failed(refusal.status, shown)
        self._noted = refusal.noted
        self._content_type = dict(answer.headers).get(b"Content-Type", b"").decode("latin-1")

    def failed(self, status: int, error: str) -> None:
        """There was no answer of an upstream."""
        self.status = status
        self._error = error

    def abandoned(self, gone: Abandoned, why: str) -> None:
        """The call ended before it held a lease.

        Args:
            why: who ended it, such as "abandoned by its client".
        """
        if gone.verdict is None:
            self._noted = gone.metadata
            self.failed(ABORTED, f"{why} while queued, after {gone.waited:.1f} s")
        else:
            self.failed(ABORTED, f"{why} while its model was loading")

    def over(self) -> None:
        """The call is no longer in flight."""
        if self._flight is not None:
            self._flight.left()

    def ends(self, *, lasted: float, ended: float) -> None:
        """Nothing more will be noted.

        Args:
            lasted: seconds from arrival to the end.
            ended: unix seconds.
        """
        self._lasted = lasted
        self._ended = ended

    @property
    def went_well(self) -> bool:
        """Whether nothing is to be said of it; False also where that is only known with its row."""
        if self._error or self.status >= FAILURES:
            return False
        return self._head is None or self._head.get(b"content-encoding") is None

    def activity(self) -> Activity:
        """Return the finished row, worked out once, after `ends`."""
        if self._activity is None:
            self._activity = self._row()
        return self._activity

    def stored(self, row_id: int) -> None:
        """The row can be read under this id."""
        if self._keep is not None:
            capture = self.witness.capture(broke_off=bool(self._error))
            if capture is not None:
                self._keep(row_id, capture)

    def _row(self) -> Activity:
        usage, error, content_type = NOTHING, self._error, self._content_type
        head = self._head
        if head is not None:
            content_type = described(head)[0]
            if self.row:
                metered = self.witness.metered()
                usage, error = metered.usage, error or metered.error
        return Activity(
            ended=self._ended,
            model=self.model,
            req_path=self.req_path,
            resp_content_type=content_type,
            resp_status_code=self.status,
            usage=usage,
            duration_ms=int(self._lasted * 1000),
            error_msg=error,
            metadata=self._metadata(),
        )

    def _metadata(self) -> dict[str, str]:
        metadata = {"selector": self._selector} if self._selector else {}
        if self.caller:
            metadata["caller"] = self.caller
        if self._noted is not None:
            metadata.update(self._noted)
        verdict = self.verdict
        if verdict is None:
            return metadata
        scored = verdict.scored
        if self._load >= 0 or scored:  # fifo speaks only of calls that it granted
            metadata.update(verdict.metadata)
        if scored:  # llama-swap's own rows know no failed loads
            metadata["serial_load_ms"] = str(int(self.load(self.began + self._lasted) * 1000))
        return metadata
