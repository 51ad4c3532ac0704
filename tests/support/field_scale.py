"""How much of a case from the field is played."""

from __future__ import annotations

SAMPLE = 0.01
"""The share of its full length that an ordinary run plays; cases say what they need at least."""


class Scale:
    """How much of a case is played: counts and times by `scale(300)`."""

    def __init__(self, share: float) -> None:
        self.share = share

    @property
    def soak(self) -> bool:
        """Whether cases are played at full length."""
        return self.share >= 1.0

    def __call__(self, full: float, at_least: int = 1) -> int:
        """So many of the full number: all in a soak, `at_least` of them in any case."""
        return max(at_least, round(full * self.share))

    def seconds(self, full: float, at_least: float = 0.1) -> float:
        """The same for a time."""
        return max(at_least, full * self.share)
