"""What an exchange wants of a model: made where it is read, served by `llamaswap.web.inference`."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from llamaswap.calls.resolution import Destination
from llamaswap.calls.selectors import Reservation
from llamaswap.http1.body import Body


class Parcel(msgspec.Struct, frozen=True):
    """What shall be sent upstream."""

    target: bytes  # path and query, escaped
    body: Body


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange that wants a model."""

    destination: Destination | None  # None: nothing has that name
    name: str  # of the model, for the row: the real id, or what was asked for
    target: bytes  # path and query as asked for, without what the upstream does not see
    pack: Callable[[], Parcel]  # makes the request ready; raises Refusal
    looks_only: bool = False
    row: bool = False  # whether it belongs into the activity log
    listed: bool = False  # whether it belongs into the list of requests in flight
    read: bool = False  # the call was read, so that `stream` says what it wants
    stream: bool = False  # a streamed answer was asked for
    selector: str = ""
    reservation: Reservation = msgspec.field(default_factory=Reservation)  # who serves it gives it back
