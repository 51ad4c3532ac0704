"""BurstGPT: `Timestamp,[Session ID,Elapsed time,]Model,Request tokens,Response tokens,Total tokens,Log Type`.

Timestamps are seconds.  The first two files lack the two columns in brackets; a response of 0 tokens is a
request that failed there.  Knows one row; neither files nor what the numbers come to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llamaswap.simulation.records import Record, number, tokens

TITLES = ("Timestamp", "Model", "Request tokens", "Response tokens")
SESSION = "Session ID"


def reader(titles: Sequence[str]) -> Callable[[Sequence[str]], Record] | None:
    """Return what reads a row of a table with these titles; None where the table is another's.

    What is returned raises BadLine. Every column is a field that a mapping can ask for.
    """
    if not set(TITLES) <= set(titles):
        return None
    when, model, prompt, generated = (titles.index(title) for title in TITLES)
    session = titles.index(SESSION) if SESSION in titles else None

    def record(row: Sequence[str]) -> Record:
        return Record(
            at=number(row[when], "Timestamp"),
            model=row[model],
            prompt=tokens(row[prompt], "Request tokens"),
            generated=tokens(row[generated], "Response tokens"),
            user=row[session] if session is not None else "",
            fields=dict(zip(titles, row, strict=False)),
        )

    return record
