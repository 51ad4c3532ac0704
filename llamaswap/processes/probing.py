"""Ask one question over HTTP, as cheaply as it can be asked.

Reads the status and lets the rest pass.  A child is asked every few
milliseconds while it loads, so there is no client, pool or header parser here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

from twisted.internet.abstract import isIPAddress, isIPv6Address
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import wrapClientTLS
from twisted.internet.interfaces import (
    IAddress,
    IConnector,
    IDelayedCall,
    IReactorSSL,
    IReactorTCP,
    IReactorTime,
    IStreamClientEndpoint,
    ITCPTransport,
)
from twisted.internet.protocol import ClientFactory, Protocol, connectionDone
from twisted.python.failure import Failure
from typing_extensions import override

from llamaswap.hosts import NamedEndpoint
from llamaswap.processes.health import Address, Answer, Prober, Question

LINGER = 0.25
"""Seconds for the rest of an answer: a server that is cut off may complain in its log."""

MOST_BYTES = 65_536
"""An answer whose status takes more than this is none, and no more of the rest is read."""

_INTERIM = re.compile(rb"HTTP/\d\.\d +1\d\d(?: [^\n]*)?\r?\n(?:[^\r\n][^\n]*\n)*\r?\n")
_STATUS_LINE = re.compile(rb"HTTP/\d\.\d +([2-9]\d\d)(?:[ \r][^\n]*)?\n")


class ProbeReactor(IReactorTCP, IReactorSSL, IReactorTime):
    """What it takes to ask."""


class HttpProber:
    """Asks over TCP; a `Prober`."""

    def __init__(self, reactor: ProbeReactor) -> None:
        self._reactor = reactor

    def ask(self, question: Question, timeout: float) -> Deferred[Answer]:
        """See `Prober`."""
        return _Probe(self._reactor, question).begin(timeout)


def make_prober(reactor: ProbeReactor) -> Prober:
    """Make what asks children whether they are ready."""
    return HttpProber(reactor)


def read_answer(data: bytes) -> Answer | None:
    """Find the status in the first bytes of a response; None when they are too few."""
    while interim := _INTERIM.match(data):
        data = data[interim.end() :]
    if final := _STATUS_LINE.match(data):
        return Answer(int(final[1]))
    if not b"HTTP/".startswith(data[:5]):
        return Answer(None, "what answered does not speak HTTP")
    if len(data) > MOST_BYTES or (b"\n" in data and not re.match(rb"HTTP/\d\.\d +1\d\d", data)):
        return Answer(None, "answered with a broken status line")
    return None


class _Probe(ClientFactory):
    """One question under way; answered once."""

    noisy = False

    def __init__(self, reactor: ProbeReactor, question: Question) -> None:
        self._reactor = reactor
        self._question = question
        self._waiting: Deferred[Answer] | None = None
        self._connector: IConnector | None = None
        self._looking: Deferred[Any] | None = None
        self._asking: _Asking | None = None
        self._timer: IDelayedCall | None = None

    def begin(self, timeout: float) -> Deferred[Answer]:
        """Connect and ask; fires within `timeout` seconds."""
        waiting = self._waiting = Deferred(self._cancelled)
        self._timer = self._reactor.callLater(timeout, self._timed_out, timeout)
        address = self._question.address
        if isIPAddress(address.host) or isIPv6Address(address.host):
            try:
                self._connector = self._connect(address, timeout)
            except OSError as error:  # on an interface that is not there, or not yet
                self._settle(Answer(None, f"no way to {address.host}: {error.strerror}"))
        else:
            self._look_up(address, timeout)
        return waiting

    @override
    def buildProtocol(self, addr: IAddress | None) -> Protocol | None:
        if self._waiting is None:  # it came too late
            return None
        self._asking = _Asking(self._reactor, _request(self._question), self._settle)
        return self._asking

    @override
    def clientConnectionFailed(self, connector: IConnector, reason: Failure) -> None:
        self._settle(Answer(None, reason.getErrorMessage().rstrip(".")))

    def _look_up(self, address: Address, timeout: float) -> None:
        """Connect to whichever address of a name answers, of both families, as its requests will."""
        endpoint: IStreamClientEndpoint
        endpoint = NamedEndpoint(self._reactor, address.host, address.port, timeout=timeout)
        if address.secure:
            endpoint = wrapClientTLS(_tls_options(address), endpoint)
        looking = self._looking = endpoint.connect(self)
        looking.addErrback(lambda reason: self._settle(Answer(None, reason.getErrorMessage().rstrip("."))))

    def _connect(self, address: Address, timeout: float) -> IConnector:
        if not address.secure:
            return self._reactor.connectTCP(address.host, address.port, self, timeout)
        return self._reactor.connectSSL(
            address.host, address.port, self, _tls_options(address), timeout, None
        )

    def _settle(self, answer: Answer) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            self._disarm()
            waiting.callback(answer)

    def _timed_out(self, timeout: float) -> None:
        what = "no connection" if self._asking is None else "no answer"
        self._settle(Answer(None, f"{what} within {timeout:.1f} s"))
        self._drop()  # whoever is told so would answer, too

    def _cancelled(self, _waiting: Deferred[Answer]) -> None:
        self._waiting = None
        self._disarm()
        self._drop()

    def _disarm(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

    def _drop(self) -> None:
        if self._asking is not None:
            self._asking.abort()
        elif self._connector is not None:
            self._connector.disconnect()
        elif self._looking is not None:
            self._looking.cancel()


class _Asking(Protocol):
    """The connection of one question."""

    def __init__(self, clock: IReactorTime, request: bytes, settle: Callable[[Answer], None]) -> None:
        self._clock = clock
        self._request = request
        self._settle = settle
        self._seen = b""
        self._surplus = 0
        self._lingering: IDelayedCall | None = None

    @override
    def connectionMade(self) -> None:
        assert self.transport is not None
        self.transport.write(self._request)

    @override
    def dataReceived(self, data: bytes) -> None:
        if self._lingering is not None:
            self._surplus += len(data)
            if self._surplus > MOST_BYTES:
                self.abort()
            return
        self._seen += data
        answer = read_answer(self._seen)
        if answer is not None:
            self._lingering = self._clock.callLater(LINGER, self.abort)
            self._settle(answer)

    @override
    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self._lingering is not None and self._lingering.active():
            self._lingering.cancel()
        self._settle(Answer(None, _why(reason)))

    def abort(self) -> None:
        """Close the connection, whatever is still on its way."""
        if self.transport is not None:
            cast("ITCPTransport", self.transport).abortConnection()


def _why(reason: Failure) -> str:
    """Return why a connection was lost that has brought no answer."""
    error = reason.value
    details = error.args[0] if error is not None and error.args else None
    if isinstance(details, list) and details:  # OpenSSL's: (library, function, reason) of each
        return f"no TLS: {details[-1][-1]}"
    if type(error).__name__ == "VerificationError":  # whose module is imported with TLS only
        return "no TLS: its certificate is for another name"
    return "the connection was closed without an answer"


def _tls_options(address: Address) -> Any:
    # Costs a good part of a second to import, and hardly any child wants it.
    from twisted.internet.ssl import optionsForClientTLS

    return optionsForClientTLS(address.host)


def _request(question: Question) -> bytes:
    return (
        f"GET {question.target} HTTP/1.1\r\nHost: {question.address.authority}\r\n"
        "User-Agent: llamaswap\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    ).encode("utf-8", "replace")
