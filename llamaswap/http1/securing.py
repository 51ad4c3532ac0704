"""Upstream connections inside TLS: in use only once the other side has proved its name.

Knows when a handshake is over; which certificates count is told by `Security`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from OpenSSL.SSL import Error as TLSError
from service_identity import VerificationError
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.endpoints import wrapClientTLS
from twisted.internet.interfaces import (
    IAddress,
    IHandshakeListener,
    IOpenSSLClientConnectionCreator,
    IReactorTime,
    IStreamClientEndpoint,
)
from twisted.internet.protocol import Factory, connectionDone
from twisted.internet.ssl import optionsForClientTLS
from twisted.python.failure import Failure
from typing_extensions import override
from zope.interface import implementer

from llamaswap.http1.upstream import Address, Home, UpstreamConnection


@dataclass(frozen=True, slots=True)
class Security:
    """How connections are secured."""

    options: Callable[[str], IOpenSSLClientConnectionCreator] = optionsForClientTLS  # by host name or address
    handshake_timeout: float = 10.0  # seconds; 0 waits for ever


class HandshakeFailed(Exception):
    """The other side speaks no TLS, or is not who it should be; the text says which."""


async def connect_securely(
    endpoint: IStreamClientEndpoint, home: Home, clock: IReactorTime, address: Address, security: Security
) -> UpstreamConnection:
    """Make a connection and shake hands; cancelling gives it up.

    Args:
        endpoint: the plain way to `address`.

    Raises:
        HandshakeFailed: there is a connection, but it cannot be trusted.
        Exception: there is no connection; what the endpoint fails with.
    """
    secure = wrapClientTLS(security.options(address[0]), endpoint, clock)
    connection = await secure.connect(_Builder(home, clock, address))
    assert isinstance(connection, SecureConnection)
    if security.handshake_timeout:
        connection.secured.addTimeout(security.handshake_timeout, clock)
    try:
        await connection.secured
    except DeferredTimeout as error:
        raise HandshakeFailed(f"no answer within {security.handshake_timeout:g} s") from error
    return connection


@implementer(IHandshakeListener)
class SecureConnection(UpstreamConnection):
    """A connection that says when its handshake is over."""

    def __init__(self, home: Home, clock: IReactorTime, address: Address) -> None:
        super().__init__(home, clock, address)
        self.secured: Deferred[None] = Deferred(self._given_up)  # fails with HandshakeFailed
        self._waiting = True

    def handshakeCompleted(self) -> None:
        """Twisted says that the other side has proved its name."""
        if self._waiting:
            self._waiting = False
            self.secured.callback(None)

    @override
    def connectionLost(self, reason: Failure = connectionDone) -> None:
        super().connectionLost(reason)
        if self._waiting:
            self._waiting = False
            self.secured.errback(HandshakeFailed(_why(reason)))

    def _given_up(self, _: Deferred[None]) -> None:
        self._waiting = False
        self.abort()


class _Builder(Factory):
    """Builds the connection that an endpoint asks for."""

    noisy = False

    def __init__(self, home: Home, clock: IReactorTime, address: Address) -> None:
        self._home = home
        self._clock = clock
        self._address = address

    @override
    def buildProtocol(self, addr: IAddress | None) -> SecureConnection:
        return SecureConnection(self._home, self._clock, self._address)


def _why(reason: Failure) -> str:
    error = reason.value
    if isinstance(error, VerificationError):
        return "its certificate is for another name"
    if isinstance(error, TLSError) and error.args and error.args[0]:
        return str(error.args[0][-1][-1])  # OpenSSL stacks (library, function, reason)
    return reason.getErrorMessage() or type(error).__name__
