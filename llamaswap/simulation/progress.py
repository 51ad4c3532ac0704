"""A bar that shows how far something is, for people who look at a terminal; nothing for anybody else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from tqdm import tqdm

Report = Callable[[int, int | None], None]
"""Told how much is done, and of how much; None = nobody knows yet."""


@contextmanager
def bar(err: TextIO, what: str, *, many: bool = True) -> Iterator[Report]:
    """Show a bar while the block runs, if `err` is a terminal; it is gone afterwards.

    Args:
        err: where it is drawn.
        what: the few words in front of it.
        many: write 44000 as 44k.

    Yields:
        what is to be told, as often as one likes: drawing is held back to ten times a second.
    """
    # A thread that looks after slow bars would be in the way of processes that are forked meanwhile.
    tqdm.monitor_interval = 0
    with tqdm(desc=what, file=err, leave=False, unit_scale=many, disable=not err.isatty()) as drawn:

        def report(done: int, total: int | None) -> None:
            if total is not None and drawn.total != total:
                drawn.total = total
            drawn.update(done - drawn.n)

        yield report
