"""The summary of a soak as a table: for the terminal, and for a document.

Pure: a ledger and the outcomes of tests in, Markdown out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from support.field_ledger import LOST, Extreme, Ledger

BEGIN = "<!-- begin: written by the soak -->"
END = "<!-- end: written by the soak -->"

MIB = 1 << 20
CASES = re.compile(r"test_case_((?:(?:and_)?\d{3}_)+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of the cases."""

    command: str  # that made it
    day: str
    machine: str
    seconds: float
    outcomes: Mapping[str, int]  # of tests: passed, failed, skipped
    cases: int  # different ones, by their numbers


def cases_in(test: str) -> set[str]:
    """The numbers of the cases that a test's name tells of."""
    return {number for numbers in CASES.findall(test) for number in re.findall(r"\d{3}", numbers)}


def rows_of(run: Run, ledger: Ledger) -> Iterator[tuple[str, str]]:
    """Each line of the table: what, and how much."""
    outcomes = ", ".join(f"{count} {word}" for word, count in run.outcomes.items() if count)
    yield "tests", f"{outcomes}, in {run.seconds / 60:.0f} min"
    yield "cases from the field", str(run.cases)
    yield "daemons run", str(ledger.daemons)
    yield "model servers started", str(ledger.processes["started"])
    yield "faults injected", str(ledger.faults.total())
    for kind, count in sorted(ledger.faults.items()):
        if count:
            yield f"- {kind}", str(count)
    yield "requests sent", str(ledger.requests["sent"])
    for kind, count in sorted(ledger.requests.items()):
        if count and kind not in ("sent", LOST):
            yield f"- {kind}", str(count)
    yield "requests lost", str(ledger.requests[LOST])
    yield "processes leaked", str(ledger.processes["leaked"])
    yield "descriptors above the base line, at most", _shown(ledger.descriptors, "")
    yield "memory above the base line, at most", _shown(ledger.memory, " MiB", MIB)
    yield "crashes with a request behind them", str(ledger.recoveries)
    yield "slowest recovery, the load included", _shown(ledger.recovery, " s")
    yield from ledger.notes.items()


def markdown(run: Run, ledger: Ledger) -> str:
    """The table, and how it came about."""
    lines = [f"Made by `{run.command}` on {run.day}, on {run.machine}.", "", "| | |", "| --- | --- |"]
    lines += [f"| {what} | {how_much} |" for what, how_much in rows_of(run, ledger)]
    return "\n".join(lines)


def write_between_marks(path: Path, text: str) -> None:
    """Replace what is between the two marks of a document.

    Raises:
        ValueError: it does not have them.
    """
    before, begin, rest = path.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{path} has no {BEGIN} ... {END}")
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def _shown(extreme: Extreme, unit: str, divisor: float = 1.0) -> str:
    digits = 2 if unit else 0
    value = f"{extreme.value / divisor:.{digits}f}{unit}"
    return f"{value} ({extreme.case})" if extreme.case else value
