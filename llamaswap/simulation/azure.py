"""Azure's LLM inference traces of 2023 and 2024: `TIMESTAMP,ContextTokens,GeneratedTokens`.

Timestamps are dates: `2023-11-16 18:15:46.6805900`, and since 2024 `2024-05-10 00:00:00.009930+00:00`.
Knows one row; neither files nor what the numbers come to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from llamaswap.simulation.records import BadLine, Record, shown, tokens

TITLES = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")


def reader(titles: Sequence[str]) -> Callable[[Sequence[str]], Record] | None:
    """Return what reads a row of a table with these titles; None where the table is another's.

    What is returned raises BadLine. Further columns (`NumImages` of 2025) are left alone.
    """
    if not set(TITLES) <= set(titles):
        return None
    when, context, generated = (titles.index(title) for title in TITLES)

    def record(row: Sequence[str]) -> Record:
        return Record(
            at=moment(row[when]),
            prompt=tokens(row[context], "ContextTokens"),
            generated=tokens(row[generated], "GeneratedTokens"),
        )

    return record


def moment(text: str) -> float:
    """Read a date and time, of UTC unless it says otherwise, as unix seconds; BadLine if it is none."""
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise BadLine(f"TIMESTAMP: expected a date and time, got {shown(text)}") from None
    return (read if read.tzinfo is not None else read.replace(tzinfo=UTC)).timestamp()
