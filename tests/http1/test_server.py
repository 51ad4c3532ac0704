"""One listening port."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocolNegotiationFactory
from twisted.internet.task import Clock
from zope.interface.verify import verifyObject

from llamaswap.http1.server import Exchange, ServerFactory
from support.http1_wires import Clients


async def wait(exchange: Exchange) -> None:
    await Deferred[None]()


def test_open_connections_are_counted() -> None:
    clients = Clients(wait)
    one, two = clients.connect(), clients.connect()
    assert clients.factory.connections == 2

    one.leave()
    two.reset()
    assert clients.factory.connections == 0


def test_abort_all_cuts_everything_and_cancels_the_handlers() -> None:
    clients = Clients(wait)
    idle, busy = clients.connect(), clients.connect()
    busy.send(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")

    clients.factory.abort_all()
    clients.clock.advance(0)

    assert idle.is_aborted() and busy.is_aborted()
    assert clients.factory.connections == 0
    assert clients.clock.getDelayedCalls() == []


def test_the_date_is_made_once_a_second() -> None:
    clock, made = Clock(), list[str]()

    def today() -> str:
        made.append(f"day {len(made)}")
        return made[-1]

    factory = ServerFactory(wait, clock, today=today)
    assert factory.date() == factory.date() == b"day 0"
    clock.advance(1)
    assert factory.date() == b"day 1"


def test_the_date_is_the_real_one_by_default() -> None:
    text = ServerFactory(wait, Clock()).date().decode()

    assert text.endswith(" GMT")
    assert parsedate_to_datetime(text).year >= 2026


def test_a_client_that_asks_which_protocols_are_spoken_is_told_of_one() -> None:
    factory = ServerFactory(wait, Clock())

    assert verifyObject(IProtocolNegotiationFactory, factory)
    assert factory.acceptableProtocols() == [b"http/1.1"]
