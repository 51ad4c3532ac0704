"""`/api/inflight/{id}/cancel`: end a request that is under way."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

from llamaswap.errors import Refusal
from llamaswap.http1.exchange import Exchange
from llamaswap.telemetry.inflight import InFlight
from llamaswap.web.answers import NO_SNIFFING, answer_json, answer_text

_CANCEL = b"/cancel"


class FlightNotFound(Refusal):
    """No request of that id is under way; it may have ended by itself."""

    status = 404

    def __init__(self) -> None:
        super().__init__("inflight request not found")


def cancel_flight(exchange: Exchange, inflight: InFlight, rest: bytes) -> None:
    """Answer `POST /api/inflight/<rest>`.

    Args:
        rest: still escaped; anything but `{id}/cancel` is no path of ours.

    Raises:
        FlightNotFound: there is nothing to cancel.
    """
    request_id = rest.removesuffix(_CANCEL)
    if request_id == rest or not request_id or b"/" in request_id:
        answer_text(exchange, "404 page not found\n", status=404, headers=(NO_SNIFFING,))
    elif inflight.cancel(unquote_to_bytes(request_id).decode("utf-8", "replace")):
        answer_json(exchange, {"msg": "ok"})
    else:
        raise FlightNotFound
