"""Refusals: requests that we answer ourselves, with an error.

A refusal is a type with its status, so that no endpoint chooses one.  Those that only one page knows stand
beside it.  How they look on the wire is `llamaswap.rendering`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from types import MappingProxyType
from typing import ClassVar

Header = tuple[bytes, bytes]


class Refusal(Exception):
    """A request that is answered by us, with an error, instead of by an upstream.

    Args:
        message: what went wrong, for a person; no paths, no environment.
        retry_after: seconds after which trying again makes sense, or None.
    """

    status: ClassVar[int] = 500
    code: ClassVar[str | None] = None  # overrides the one that goes with the status
    always_json: ClassVar[bool] = False
    noted: Mapping[str, str] = MappingProxyType({})  # what the activity row says of a ticket that was refused

    def __init__(self, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after = retry_after

    def headers(self) -> tuple[Header, ...]:
        """Return the headers that belong to this refusal besides its content type."""
        if self.retry_after is None:
            return ()
        return ((b"Retry-After", str(self.retry_after).encode()),)


class BadRequest(Refusal):
    """The request cannot be understood."""

    status = 400


class NoModel(Refusal):
    """No model name could be found in the request."""

    status = 404

    def __init__(self) -> None:
        super().__init__("no model id could be identified")


class LoopDetected(Refusal):
    """The request has been here before: one of the peers leads back to us."""

    status = 508

    def __init__(self) -> None:
        super().__init__("loop detected: this request has passed here before")


class CodedRequest(Refusal):
    """The body is compressed, so that nobody can see which model it names.

    Args:
        coding: its Content-Encoding, as it was sent.
    """

    status = 415

    def __init__(self, coding: str) -> None:
        super().__init__(f"a request body in {coding[:64]} cannot be read; send it uncompressed")


class UnknownModel(Refusal):
    """The name is neither a model nor an alias."""

    status = 404

    def __init__(self) -> None:
        super().__init__("no router for requested model")


class ModelNotFound(Refusal):
    """A path names a model that does not exist."""

    status = 404

    def __init__(self) -> None:
        super().__init__("model not found")


class NotLoaded(Refusal):
    """This kind of request may not start a model, and the model is not ready."""

    status = 409


class TooManyRequests(Refusal):
    """`concurrencyLimit` requests of this model are already waiting or running."""

    status = 429
    code = "concurrency_limit"
    always_json = True

    def __init__(self) -> None:
        super().__init__("Too many requests", retry_after=1)


class QueueFull(Refusal):
    """As many requests wait as may (`limits.waiting`)."""

    status = 503
    code = "queue_full"

    def __init__(self) -> None:
        super().__init__("the queue is full", retry_after=5)


class BandFull(Refusal):
    """As many requests of its band wait as may (`maxQueue`).

    Args:
        band: whose queue is full.
        retry_after: seconds until a place is likely to be free.
    """

    status = 429
    code = "band_full"

    def __init__(self, band: str, retry_after: int) -> None:
        super().__init__(f"too many {band} requests are waiting", retry_after=retry_after)


class DeadlineHopeless(Refusal):
    """The request would have to wait longer than it may (`maxWait`), so that it need not begin to.

    Args:
        max_wait: seconds that it may wait.
        expected: seconds that it would probably wait.
    """

    status = 503
    code = "deadline_hopeless"

    def __init__(self, max_wait: float, expected: float) -> None:
        # Rounded up, so that it is never told to be no longer than it may be.
        words = f"the wait is expected to take {ceil(expected)} s, and may take {round(max_wait, 3):g} s"
        super().__init__(words, retry_after=max(1, round(expected - max_wait)))


class DeadlinePassed(Refusal):
    """The request has waited as long as it may (`maxWait`)."""

    status = 504
    code = "deadline_passed"

    def __init__(self, max_wait: float) -> None:
        super().__init__(f"still queued after {round(max_wait, 3):g} s, which is as long as it may wait")


class NoSuchTicket(Refusal):
    """Nobody waits with this number (any more)."""

    status = 404

    def __init__(self) -> None:
        super().__init__("no such request is waiting")


class NeedsSerial(Refusal):
    """Only the serial scheduler can do this."""

    status = 409

    def __init__(self) -> None:
        super().__init__("this needs routing.scheduler.use: serial")


class TooManyReaders(Refusal):
    """As many streams of events and logs are open as may (`limits.readers`)."""

    status = 503
    code = "too_many_readers"

    def __init__(self) -> None:
        super().__init__("too many readers of events and logs", retry_after=5)


class BodyTooLarge(Refusal):
    """The body of a request is larger than any may be (`limits.requestBody`)."""

    status = 413
    code = "request_too_large"
    always_json = True  # it is found out before anybody looks at what the client accepts

    def __init__(self) -> None:
        super().__init__("request body too large")


class BodiesFull(Refusal):
    """The bodies of other requests take all the memory that bodies may (`limits.heldBodies`)."""

    status = 503
    code = "no_room_for_body"
    always_json = True

    def __init__(self) -> None:
        super().__init__("no room for another request body now", retry_after=5)


class ModelProtected(Refusal):
    """The request needs the place of a model that no request for another one may unload (`protected`).

    Args:
        model: that the request asks for.
        holders: who stands in its way.
    """

    status = 409
    code = "model_protected"

    def __init__(self, model: str, holders: Sequence[str]) -> None:
        one = len(holders) == 1
        super().__init__(
            f"model{'' if one else 's'} {', '.join(holders)} {'is' if one else 'are'} loaded and protected, "
            f"and {model} cannot run beside {'it' if one else 'them'}; unload {'it' if one else 'them'} "
            f"(POST /api/models/unload/{holders[0]}) or send X-LlamaSwap-Evict: protected"
        )


class LoadRefused(Refusal):
    """The model that the request needs could not be loaded.

    Args:
        why: one line, the cause.
        output: the child's last lines, oldest first.
    """

    status = 500

    def __init__(self, why: str, output: Sequence[str] = ()) -> None:
        super().__init__(f"unspecific error: {_with_output(why, output)}")


class ModelFailing(Refusal):
    """The model failed to load several times in a row; nothing is evicted for it for a while."""

    status = 503

    def __init__(self, model: str, why: str, output: Sequence[str], retry_after: int) -> None:
        words = f"model {model} keeps failing to load: {_with_output(why, output)}"
        super().__init__(words, retry_after=retry_after)


class ModelUnloaded(Refusal):
    """Somebody unloaded the model while this request waited for it."""

    status = 500

    def __init__(self, router: str = "group") -> None:
        super().__init__(f"unspecific error: {router}: model unloaded")


class UnloadFailed(Refusal):
    """A model's server does not end, whatever is done to it."""


class ShuttingDown(Refusal):
    """The daemon is stopping; another one may take over in a moment."""

    status = 503

    def __init__(self) -> None:
        super().__init__("llamaswap is shutting down", retry_after=5)


class NotReady(Refusal):
    """The model's process went away between its grant and its use."""

    status = 503

    def __init__(self, model: str) -> None:
        super().__init__(f"[{model}] process is not ready")


class UpstreamUnreachable(Refusal):
    """The upstream gave no response: refused, reset, timed out or nonsense."""

    status = 502


def _with_output(why: str, output: Sequence[str]) -> str:
    """Join a cause with the last lines of a child's output."""
    if not output:
        return why
    return f"{why}; its last output: {' | '.join(output)}"
