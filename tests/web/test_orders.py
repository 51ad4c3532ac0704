"""What an exchange wants of a model."""

from __future__ import annotations

import pytest

from llamaswap.web.orders import Order, Parcel


def nothing() -> Parcel:
    """Is not sent."""
    raise AssertionError


def test_an_order_for_nothing_in_particular_is_no_call_and_holds_nothing() -> None:
    order = Order(destination=None, name="x", target=b"/", pack=nothing)

    assert not (order.looks_only or order.row or order.listed or order.read or order.stream)
    order.reservation.release()
    with pytest.raises(AttributeError):
        order.name = "y"  # type: ignore[misc]  # what the test is about
