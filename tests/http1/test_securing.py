"""Connections inside TLS, before and after their handshake."""

from __future__ import annotations

import pytest
from OpenSSL.SSL import Error as TLSError
from service_identity import VerificationError
from twisted.internet.error import ConnectionLost
from twisted.python.failure import Failure

from llamaswap.http1.client import Pool
from llamaswap.http1.securing import HandshakeFailed, SecureConnection
from support.http1_wires import Running, Upstreams, Wire


class Attempt:
    """A secure connection under way over a wire that nobody answers."""

    def __init__(self, handshake_timeout: float = 10.0) -> None:
        self.clock = Upstreams()
        self.connection = SecureConnection(Pool(self.clock), self.clock, ("box", 443))
        self.wire = Wire(self.clock)
        self.wire.protocol = self.connection
        self.connection.makeConnection(self.wire)  # type: ignore[no-untyped-call]  # Twisted's
        self.secured = Running(self._wait())

    async def _wait(self) -> None:
        await self.connection.secured


def test_a_connection_is_secured_once_the_handshake_is_over() -> None:
    attempt = Attempt()
    assert attempt.secured.waits()

    attempt.connection.handshakeCompleted()

    assert attempt.secured.result() is None


@pytest.mark.parametrize(
    ("reason", "why"),
    [
        (TLSError([("SSL routines", "", "certificate verify failed")]), "certificate verify failed"),
        (TLSError(), "Error"),
        (VerificationError(errors=[]), "its certificate is for another name"),
        (ConnectionLost(), "Connection to the other side was lost in a non-clean fashion."),
    ],
)
def test_a_connection_that_is_lost_before_is_not(reason: Exception, why: str) -> None:
    attempt = Attempt()
    attempt.connection.connectionLost(Failure(reason))

    error = attempt.secured.error()
    assert isinstance(error, HandshakeFailed)
    assert str(error).startswith(why)


def test_a_loss_after_the_handshake_is_no_failed_handshake() -> None:
    attempt = Attempt()
    attempt.connection.handshakeCompleted()
    attempt.connection.connectionLost(Failure(ConnectionLost()))
    assert attempt.secured.result() is None


def test_giving_up_cuts_the_connection() -> None:
    attempt = Attempt()
    attempt.secured.cancel()
    attempt.clock.advance(0)
    assert attempt.wire.aborted
    assert attempt.clock.getDelayedCalls() == []
