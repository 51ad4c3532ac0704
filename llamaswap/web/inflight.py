"""`/api/inflight/{id}/cancel`: end a request that is under way."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from llamaswap.errors import Refusal
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.heads import RequestHead
from llamaswap.telemetry.inflight import InFlight
from llamaswap.web.answers import answer_json, answer_not_found
from llamaswap.web.keys import Keyring

_CANCEL = b"/cancel"


class FlightNotFound(Refusal):
    """No request of that id is under way; it may have ended by itself."""

    status = 404

    def __init__(self) -> None:
        super().__init__("inflight request not found")


class NotYours(Refusal):
    """The key belongs to a caller whose priority is limited, and the request is somebody else's."""

    status = 403

    def __init__(self) -> None:
        super().__init__("a caller with a maxPriority can only cancel its own requests")


def cancel_flight(exchange: Exchange, inflight: InFlight, keyring: Keyring, rest: bytes) -> None:
    """Answer `POST /api/inflight/<rest>`.

    Args:
        keyring: tells whose key a request carries.
        rest: still escaped; anything but `{id}/cancel` is no path of ours.

    Raises:
        FlightNotFound: there is nothing to cancel.
        NotYours: by this caller.
    """

    def check(head: RequestHead) -> None:
        """Leave those who may not ask for everything their own requests only."""
        caller = keyring.limited(exchange.head)
        if caller is not None and keyring.caller_of(head) != caller:
            raise NotYours

    request_id = rest.removesuffix(_CANCEL)
    if request_id == rest or not request_id or b"/" in request_id:
        answer_not_found(exchange)
    elif inflight.cancel(unquote_to_bytes(request_id).decode("utf-8", "replace"), check):
        answer_json(exchange, {"msg": "ok"})
    else:
        raise FlightNotFound
