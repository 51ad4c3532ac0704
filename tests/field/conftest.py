"""How long cases from the field last, and what a run of them came to.

`LLAMASWAP_SOAK=1` plays them whole, otherwise a sample of each.  In a soak a
table is printed at the end; `LLAMASWAP_SOAK_REPORT` names a document that it
is written into, between its two marks.
"""

from __future__ import annotations

import datetime
import os
import platform
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.field_ledger import LEDGER
from support.field_report import Run, cases_in, markdown, write_between_marks
from support.field_scale import SAMPLE, Scale

SOAK = os.environ.get("LLAMASWAP_SOAK") == "1"
REPORT = os.environ.get("LLAMASWAP_SOAK_REPORT", "")
COMMAND = os.environ.get("LLAMASWAP_SOAK_COMMAND", "make soak")

played: Counter[str] = Counter()
numbers: set[str] = set()
began = time.monotonic()


def pytest_configure(config: pytest.Config) -> None:
    """Declare the mark of cases that are only worth their time in a soak."""
    config.addinivalue_line("markers", "soak(seconds): so long at full length; skipped in an ordinary run")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what only a soak plays."""
    if SOAK:
        return
    for item in items:
        if item.get_closest_marker("soak") is not None:
            item.add_marker(pytest.mark.skip(reason="only in a soak: LLAMASWAP_SOAK=1"))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count what became of each test."""
    if report.when == "call" or report.outcome != "passed":
        word = "failed as expected" if hasattr(report, "wasxfail") else report.outcome
        played[word] += 1
        if report.outcome == "passed":
            numbers.update(cases_in(report.nodeid))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what a soak came to."""
    if not SOAK or not LEDGER.daemons:
        return
    table = markdown(_run(), LEDGER)
    terminalreporter.section("what the soak came to")
    terminalreporter.write_line(table)
    if REPORT:
        write_between_marks(Path(REPORT), table)


def _run() -> Run:
    system = f"Linux {platform.release()}, Python {platform.python_version()}"
    return Run(
        command=COMMAND,
        day=datetime.datetime.now(datetime.UTC).date().isoformat(),
        machine=f"{os.cpu_count()} processors, {system}",
        seconds=time.monotonic() - began,
        outcomes=played,
        cases=len(numbers),
    )


@pytest.fixture
def scale() -> Scale:
    """How much of a case is played."""
    return Scale(1.0 if SOAK else SAMPLE)


@pytest.fixture(autouse=True)
def in_the_ledger(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Tell the ledger which case is played, and of the signals that it sends."""
    kill = os.kill

    def counted(pid: int, signum: int) -> None:
        kill(pid, signum)
        if signum:
            LEDGER.signalled(signal.Signals(signum).name)

    LEDGER.case, LEDGER.closing = request.node.name, False
    monkeypatch.setattr(os, "kill", counted)
    yield
    LEDGER.case = ""
