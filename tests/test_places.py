"""Where the daemon listens."""

from __future__ import annotations

from typing import cast

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory, Protocol

from llamaswap.inherited import SocketReactor
from llamaswap.places import CannotListen, Places
from support.daemon import ServiceReactor


def places(*descriptions: str) -> tuple[Places, ServiceReactor]:
    """Places in memory, not open yet."""
    reactor = ServiceReactor()
    return Places(descriptions, cast("SocketReactor", reactor)), reactor


def open_(there: Places) -> None:
    there.open(Factory.forProtocol(Protocol))


def test_every_place_is_opened_in_order() -> None:
    there, reactor = places("tcp:8080", "tcp:8081")

    open_(there)

    assert [port.number for port in reactor.ports] == [8080, 8081]
    assert there.shown() == "127.0.0.1:8080, 127.0.0.1:8081"


def test_where_one_cannot_be_had_none_is_left_open() -> None:
    there, reactor = places("tcp:8080", "tcp:8081")
    reactor.taken.add(8081)

    with pytest.raises(CannotListen, match=r"^cannot listen on tcp:8081: .*Address already in use"):
        open_(there)

    assert [port.open for port in reactor.ports] == [False]
    assert (there.ports, there.shown()) == ([], "")


@pytest.mark.parametrize(
    "description", ["tcp:", "tcp:eighty", "tcp", "unix", "systemd:domain=INET", "nonsense:1"]
)
def test_an_endpoint_that_means_nothing_is_one_line(description: str) -> None:
    with pytest.raises(CannotListen) as why:
        open_(places(description)[0])

    assert str(why.value).startswith(f"cannot listen on {description}: ")
    assert "\n" not in str(why.value)


def test_closed_places_are_remembered() -> None:
    there, reactor = places("tcp:8080")
    open_(there)

    closed = Deferred.fromCoroutine(there.close())

    assert closed.called
    assert [port.open for port in reactor.ports] == [False]
    assert list(there.addresses) == ["127.0.0.1:8080"]


@pytest.mark.parametrize(
    ("descriptions", "outlive"),
    [(("tcp:8080",), False), (("tcp:8080", "systemd:index=0"), True), (("fd:3",), True), ((), False)],
)
def test_sockets_of_somebody_else_outlive_us(descriptions: tuple[str, ...], outlive: bool) -> None:
    assert places(*descriptions)[0].outlive_us is outlive
