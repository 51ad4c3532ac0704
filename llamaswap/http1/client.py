"""Upstream connections: new ones, and idle ones kept for the next request.

Does not know what travels over them (`llamaswap.http1.upstream`).
"""

from __future__ import annotations

from twisted.internet.abstract import isIPAddress, isIPv6Address
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectError, ConnectingCancelledError, DNSLookupError
from twisted.internet.error import TimeoutError as ConnectTimeout
from twisted.internet.interfaces import IAddress, IConnector, IReactorTCP, IReactorTime
from twisted.internet.protocol import ClientFactory, Factory
from twisted.python.failure import Failure
from typing_extensions import override

from llamaswap.hosts import NamedEndpoint
from llamaswap.http1.heads import ResponseHead
from llamaswap.http1.memory import HeadMemory
from llamaswap.http1.parsing import parse_response
from llamaswap.http1.securing import HandshakeFailed, Security, connect_securely
from llamaswap.http1.upstream import Address, UpstreamConnection


class UpstreamFailed(Exception):
    """There is no response, and there will be none; `reason` says why in a few words.

    Args:
        sent: whether the upstream may have seen some of the request.
    """

    def __init__(self, reason: str, *, sent: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sent = sent


MAX_IDLE = 100  # connections; fewer, and a crowd of clients connects anew for nearly every request

_Ways = tuple[float, float, Security | None]


class ClientReactor(IReactorTCP, IReactorTime):
    """What it takes to connect and to count time (host names also need IReactorPluggableNameResolver)."""


class Pool:
    """Connections to upstreams: new ones, and idle ones kept per host and port."""

    def __init__(
        self,
        reactor: ClientReactor,
        *,
        connect_timeout: float = 30.0,
        idle_seconds: float = 90.0,
        max_idle: int = MAX_IDLE,
        security: Security | None = None,
    ) -> None:
        """Keep nothing yet.

        Args:
            connect_timeout: seconds for one connection to come about.
            idle_seconds: an unused connection is dropped after this long.
            max_idle: connections kept per host and port; the longest unused goes first.
            security: every connection is inside TLS; None leaves them plain.
        """
        self.memory: HeadMemory[ResponseHead] = HeadMemory(parse_response)
        self._reactor = reactor
        self._connect_timeout = connect_timeout
        self._idle_seconds = idle_seconds
        self._max_idle = max_idle
        self._security = security
        self._idle: dict[Address, list[UpstreamConnection]] = {}
        self._ways: _Ways = (connect_timeout, idle_seconds, security)
        self._kin: dict[_Ways, Pool] = {}
        self._closed = False

    def like(self, *, connect_timeout: float, idle_seconds: float, security: Security | None) -> Pool:
        """The pool with these ways that forgets and closes with this one; itself where they are its own."""
        ways = (connect_timeout, idle_seconds, security)
        if ways == self._ways:
            return self
        pool = self._kin.get(ways)
        if pool is None:
            pool = self._kin[ways] = Pool(
                self._reactor,
                connect_timeout=connect_timeout,
                idle_seconds=idle_seconds,
                max_idle=0 if self._closed else self._max_idle,
                security=security,
            )
        return pool

    def take(self, host: str, port: int) -> UpstreamConnection | None:
        """The idle connection that was used last, if there is one."""
        idle = self._idle.get((host, port))
        return idle.pop() if idle else None

    async def connect(self, host: str, port: int) -> UpstreamConnection:
        """A new connection; cancelling gives it up.

        Raises:
            UpstreamFailed: refused, unreachable, unknown, not to be trusted or too slow.
        """
        try:
            return await self._connect((host, port))
        except ConnectingCancelledError as error:
            raise CancelledError from error
        except HandshakeFailed as error:
            raise UpstreamFailed(f"cannot speak TLS with {host}:{port}: {error}") from error
        except (ConnectError, DNSLookupError, ConnectTimeout, ValueError, OSError) as error:
            # ValueError: no host is called that.  OSError: an address on an interface that is not there.
            raise UpstreamFailed(f"cannot connect to {host}:{port}: {error}", sent=False) from error

    async def _connect(self, address: Address) -> UpstreamConnection:
        host, port = address
        if self._security is None and (isIPAddress(host) or isIPv6Address(host)):
            return await _Attempt(self, self._reactor, address).start(self._connect_timeout)
        endpoint = NamedEndpoint(self._reactor, host, port, timeout=self._connect_timeout)
        if self._security is not None:
            return await connect_securely(endpoint, self, self._reactor, address, self._security)
        connection = await endpoint.connect(_Builder(self, self._reactor, address))
        assert isinstance(connection, UpstreamConnection)
        return connection

    def put_back(self, connection: UpstreamConnection) -> None:
        """Keep a connection whose response is complete; called by the connection."""
        if self._closed or not self._max_idle:
            connection.abort()
            return
        idle = self._idle.setdefault(connection.address, [])
        idle.append(connection)
        connection.rest(self._idle_seconds)
        if len(idle) > self._max_idle:
            idle.pop(0).abort()

    def remove(self, connection: UpstreamConnection) -> None:
        """Forget an idle connection that is lost; called by the connection."""
        idle = self._idle.get(connection.address)
        if idle and connection in idle:
            idle.remove(connection)

    def forget(self, host: str, port: int) -> None:
        """Drop the idle connections to a server that has stopped."""
        for connection in self._idle.pop((host, port), ()):
            connection.abort()
        for pool in self._kin.values():
            pool.forget(host, port)

    def close(self) -> None:
        """Drop all idle connections, and keep none from now on."""
        self._closed = True
        for host, port in tuple(self._idle):
            self.forget(host, port)
        for pool in self._kin.values():
            pool.close()


class _Builder(Factory):
    """Builds the connection that an endpoint asks for."""

    noisy = False

    def __init__(self, pool: Pool, clock: IReactorTime, address: Address) -> None:
        self._pool = pool
        self._clock = clock
        self._address = address

    @override
    def buildProtocol(self, addr: IAddress | None) -> UpstreamConnection:
        return UpstreamConnection(self._pool, self._clock, self._address)


class _Attempt(ClientFactory):
    """One attempt to connect to an IP address.

    Endpoints put a wrapper around the protocol that costs a call for each
    segment ever received; this does not.
    """

    noisy = False

    def __init__(self, pool: Pool, reactor: ClientReactor, address: Address) -> None:
        self._pool = pool
        self._reactor = reactor
        self._address = address
        self._connector: IConnector | None = None
        self._result: Deferred[UpstreamConnection] | None = Deferred(self._cancelled)

    def start(self, timeout: float) -> Deferred[UpstreamConnection]:
        """Fires with the connection, or fails with Twisted's connection errors."""
        result = self._result
        assert result is not None
        host, port = self._address
        self._connector = self._reactor.connectTCP(host, port, self, timeout=timeout)
        return result

    @override
    def buildProtocol(self, addr: IAddress | None) -> UpstreamConnection:
        return UpstreamConnection(self._pool, self._reactor, self._address, self._made)

    @override
    def clientConnectionFailed(self, connector: IConnector, reason: Failure) -> None:
        result, self._result = self._result, None
        if result is not None:
            result.errback(reason)

    def _made(self, connection: UpstreamConnection) -> None:
        result, self._result = self._result, None
        if result is None:
            connection.abort()
        else:
            result.callback(connection)

    def _cancelled(self, _: Deferred[UpstreamConnection]) -> None:
        self._result = None
        if self._connector is not None:
            self._connector.stopConnecting()
