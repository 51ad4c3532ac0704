"""Our own traces: `arrival_s,model,priority,run_s[,user][,cancel_after_s]`.

Columns may stand in any order, and further ones are fields that a mapping can ask for.  Knows one row, and
how to write one; no files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llamaswap.calls.priority import parse_priority
from llamaswap.simulation.records import BadLine, Record, number, shown

TITLES = ("arrival_s", "model", "priority", "run_s")
USER, CANCEL = "user", "cancel_after_s"


def reader(titles: Sequence[str]) -> Callable[[Sequence[str]], Record] | None:
    """Return what reads a row of a table with these titles; None where the table is another's.

    What is returned raises BadLine.
    """
    if not set(TITLES) <= set(titles):
        return None
    when, model, priority, run = (titles.index(title) for title in TITLES)
    user = titles.index(USER) if USER in titles else None
    cancel = titles.index(CANCEL) if CANCEL in titles else None

    def record(row: Sequence[str]) -> Record:
        if not row[model]:
            raise BadLine("model: expected a name, got nothing")
        return Record(
            at=number(row[when], "arrival_s"),
            model=row[model],
            priority=priority_of(row[priority]),
            run=number(row[run], "run_s"),
            user=row[user] if user is not None else "",
            cancel_after=number(row[cancel], CANCEL) if cancel is not None and row[cancel] else None,
            fields=dict(zip(titles, row, strict=False)),
        )

    return record


def priority_of(text: str) -> int:
    """Read a priority as the header would be; BadLine where the header would count as unparseable."""
    priority = parse_priority(text.encode("utf-8", "replace"))
    if not priority.parseable:
        raise BadLine(f"priority: expected a whole number, interactive, normal or batch, got {shown(text)}")
    return priority.value
