"""What one probe asks, and how its answer is read."""

from __future__ import annotations

from typing import NoReturn, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from OpenSSL import SSL
from service_identity import VerificationError
from twisted.internet import error
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.protocol import ClientFactory, Protocol
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.python.failure import Failure

from llamaswap.processes import probing
from llamaswap.processes.health import Address, Answer, Question
from llamaswap.processes.probing import LINGER, MOST_BYTES, ProbeReactor, make_prober, read_answer

ADDRESS = Address("127.0.0.1", 5800, "", "localhost:5800")


class Asked:
    """One probe on a reactor in memory."""

    def __init__(self, timeout: float = 5.0, address: Address = ADDRESS) -> None:
        self.reactor = MemoryReactorClock()
        self.answers: list[Answer] = []
        self.errors: list[BaseException] = []
        self.transport = StringTransport()
        self.waiting = make_prober(cast("ProbeReactor", self.reactor)).ask(
            Question(address, "/health"), timeout
        )
        self.waiting.addCallbacks(self.answers.append, lambda failure: self.errors.append(failure.value))

    def connect(self) -> None:
        protocol = self.reactor.tcpClients[0][2].buildProtocol(None)
        assert isinstance(protocol, Protocol)
        self.protocol = protocol
        self.protocol.makeConnection(self.transport)


def test_a_probe_is_one_plain_request_to_the_address() -> None:
    asked = Asked()
    asked.connect()

    assert asked.reactor.tcpClients[0][:2] == ("127.0.0.1", 5800)
    head = asked.transport.value().decode()
    assert head.startswith("GET /health HTTP/1.1\r\nHost: localhost:5800\r\n")
    assert "Connection: close\r\n" in head
    assert head.endswith("\r\n\r\n")


def test_the_answer_is_there_as_soon_as_the_status_is() -> None:
    asked = Asked()
    asked.connect()

    asked.protocol.dataReceived(b"HTTP/1.1 20")
    assert asked.answers == []
    asked.protocol.dataReceived(b"0 OK\r\n")

    assert asked.answers == [Answer(200)]


def test_the_rest_of_an_answer_gets_a_moment_before_the_line_is_cut() -> None:
    asked = Asked()
    asked.connect()
    asked.protocol.dataReceived(b"HTTP/1.1 200 OK\r\n")

    asked.reactor.advance(LINGER - 0.01)
    assert not asked.transport.disconnected
    asked.reactor.advance(0.01)

    assert asked.transport.disconnected


def test_a_rest_without_end_is_cut_at_once() -> None:
    asked = Asked()
    asked.connect()
    asked.protocol.dataReceived(b"HTTP/1.1 200 OK\r\n")

    asked.protocol.dataReceived(b"x" * (MOST_BYTES + 1))

    assert asked.transport.disconnected


def test_a_server_that_closes_after_its_answer_leaves_nothing_behind() -> None:
    asked = Asked()
    asked.connect()
    asked.protocol.dataReceived(b"HTTP/1.1 200 OK\r\n\r\n")

    asked.protocol.connectionLost(Failure(ConnectionDone()))

    assert asked.answers == [Answer(200)]
    assert asked.reactor.getDelayedCalls() == []


def test_a_refused_connection_is_an_answer_without_status() -> None:
    asked = Asked()

    connector = asked.reactor.connectors[0]
    asked.reactor.tcpClients[0][2].clientConnectionFailed(connector, Failure(error.ConnectionRefusedError()))

    assert [answer.status for answer in asked.answers] == [None]
    assert "refused" in asked.answers[0].error
    assert asked.reactor.getDelayedCalls() == []


def test_a_connection_that_closes_early_is_an_answer_without_status() -> None:
    asked = Asked()
    asked.connect()

    asked.protocol.connectionLost(Failure(ConnectionDone()))

    assert asked.answers == [Answer(None, "the connection was closed without an answer")]


@pytest.mark.parametrize(
    ("why", "told"),
    [
        (SSL.Error([("SSL routines", "", "certificate verify failed")]), "no TLS: certificate verify failed"),
        (VerificationError([]), "no TLS: its certificate is for another name"),
        (SSL.Error([]), "the connection was closed without an answer"),
    ],
)
def test_what_is_wrong_with_a_certificate_is_told(why: Exception, told: str) -> None:
    asked = Asked()
    asked.connect()

    asked.protocol.connectionLost(Failure(why))

    assert asked.answers == [Answer(None, told)]


def test_a_server_that_hangs_is_given_up_in_time() -> None:
    asked = Asked(timeout=2.0)
    asked.connect()

    asked.reactor.advance(2.0)

    assert asked.answers == [Answer(None, "no answer within 2.0 s")]
    assert asked.transport.disconnected


def test_a_connection_that_never_comes_about_is_given_up_in_time() -> None:
    asked = Asked(timeout=2.0)

    asked.reactor.advance(2.0)

    assert asked.answers == [Answer(None, "no connection within 2.0 s")]
    assert asked.reactor.connectors[0]._disconnected


def test_a_cancelled_probe_closes_its_connection() -> None:
    asked = Asked()
    asked.connect()

    asked.waiting.cancel()

    assert isinstance(asked.errors[0], CancelledError)
    assert asked.transport.disconnected
    assert asked.reactor.getDelayedCalls() == []


class Lookups:
    """Stands for endpoints that look a name up."""

    def __init__(self) -> None:
        self.places: list[tuple[str, int]] = []
        self.under_way: Deferred[Protocol] = Deferred()
        self.factory: ClientFactory | None = None

    def __call__(self, _reactor: object, host: str, port: int, timeout: float) -> Lookups:
        self.places.append((host, port))
        return self

    def connect(self, factory: ClientFactory) -> Deferred[Protocol]:
        self.factory = factory
        return self.under_way


@pytest.fixture
def lookups(monkeypatch: pytest.MonkeyPatch) -> Lookups:
    lookups = Lookups()
    monkeypatch.setattr(probing, "NamedEndpoint", lookups)
    return lookups


NAMED = Address("box", 5800, "", "box:5800")


def test_a_name_is_looked_up_as_it_is_for_requests(lookups: Lookups) -> None:
    asked = Asked(address=NAMED)

    assert lookups.places == [("box", 5800)]
    lookups.under_way.errback(error.DNSLookupError("no results"))
    assert asked.answers == [Answer(None, "DNS lookup failed: no results")]
    assert asked.reactor.getDelayedCalls() == []


def test_a_look_up_without_end_is_given_up_in_time_and_what_comes_of_it_later_is_not_asked(
    lookups: Lookups,
) -> None:
    asked = Asked(1.0, address=NAMED)

    asked.reactor.advance(1.0)

    assert asked.answers == [Answer(None, "no connection within 1.0 s")]
    assert lookups.under_way.called, "it is cancelled"
    assert lookups.factory is not None
    assert lookups.factory.buildProtocol(None) is None


def test_an_interface_that_is_not_there_is_an_answer_without_status(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*_: object) -> NoReturn:
        raise OSError(-2, "Name or service not known")

    monkeypatch.setattr(MemoryReactorClock, "connectTCP", connect)
    asked = Asked(address=Address("fe80::1%none", 5800, "", "[fe80::1]:5800"))

    assert asked.answers == [Answer(None, "no way to fe80::1%none: Name or service not known")]
    assert asked.reactor.getDelayedCalls() == []


def test_an_https_proxy_is_asked_over_tls() -> None:
    reactor = MemoryReactorClock()
    secure = Address("192.0.2.1", 443, "", "box", secure=True)

    answer = make_prober(cast("ProbeReactor", reactor)).ask(Question(secure, "/"), 1.0)

    assert reactor.sslClients[0][:2] == ("192.0.2.1", 443)
    answer.addErrback(lambda failure: failure.trap(CancelledError))
    answer.cancel()


@pytest.mark.parametrize(
    ("data", "answer"),
    [
        (b"", None),
        (b"HTT", None),
        (b"HTTP/1.1 200 OK\r\n", Answer(200)),
        (b"HTTP/1.0 404\n", Answer(404)),
        (b"HTTP/1.1 100 Continue\r\n\r\n", None),
        (b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n", Answer(200)),
        (b"SSH-2.0-x\r\n", Answer(None, "what answered does not speak HTTP")),
        (b"HTTP/1.1 2000\r\n", Answer(None, "answered with a broken status line")),
        (b"HTTP/" + b"1" * (MOST_BYTES + 1), Answer(None, "answered with a broken status line")),
    ],
)
def test_the_status_is_found_in_the_first_bytes(data: bytes, answer: Answer | None) -> None:
    assert read_answer(data) == answer


@given(st.binary(max_size=60))
def test_any_bytes_can_be_read(data: bytes) -> None:
    answer = read_answer(b"HTTP/1.1 " + data)

    assert answer is None or (answer.status is None) == bool(answer.error)
