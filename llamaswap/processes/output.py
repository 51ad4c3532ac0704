"""Read what a child writes, as fast as it comes.

One pipe for stdout and stderr keeps them in order.  Knows file descriptors;
not what the bytes say.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from twisted.internet.interfaces import IReactorFDSet, IReadDescriptor
from twisted.python.failure import Failure
from zope.interface import implementer

CHUNK_BYTES = 65_536  # a pipe holds no more


@implementer(IReadDescriptor)
class OutputPipe:
    """The reading end of a child's output; owns its descriptor."""

    def __init__(
        self,
        reactor: IReactorFDSet,
        descriptor: int,
        received: Callable[[bytes], None],
        closed: Callable[[], None],
    ) -> None:
        """Start reading.

        Args:
            descriptor: not blocking.
            received: takes each chunk.
            closed: called once, when no writer is left; not by `close`.
        """
        self._reactor = reactor
        self._descriptor = descriptor
        self._received = received
        self._closed = closed
        reactor.addReader(self)

    def close(self) -> None:
        """Stop reading; calling it again does nothing."""
        if self._descriptor >= 0:
            self._reactor.removeReader(self)
            os.close(self._descriptor)
            self._descriptor = -1

    def doRead(self) -> None:
        try:
            data = os.read(self._descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return
        if data:
            self._received(data)
        else:
            self._at_end()

    def connectionLost(self, reason: Failure) -> None:
        self._at_end()

    def fileno(self) -> int:
        return self._descriptor

    def logPrefix(self) -> str:
        return "child output"

    def _at_end(self) -> None:
        if self._descriptor >= 0:
            self.close()
            self._closed()
