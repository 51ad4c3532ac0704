"""What a place that facts are read from looks like, and how it fails."""

from __future__ import annotations

from typing import Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)


class SourceFailed(Exception):
    """Nothing can be read now; the text says why.  Opening the source anew may help."""


class SourceAbsent(SourceFailed):
    """There is nothing of the kind here, as far as one can see."""


class Source(Protocol[T_co]):
    """Somewhere that facts are read from; each call may block, and is made on a thread that may."""

    def read(self) -> T_co:
        """Read once.

        Raises:
            SourceFailed: not now.
        """

    def close(self) -> None:
        """Let go of whatever was opened; never fails."""
