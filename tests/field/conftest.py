"""How long cases from the field last, and what a run of them came to.

`LLAMASWAP_SOAK=1` plays them whole, otherwise a sample of each.  In a soak a
table is printed at the end; `LLAMASWAP_SOAK_REPORT` names a document that it
is written into, between its two marks, if all went well.

Several workers of pytest-xdist may share a soak: what takes longest begins
first, what is measured waits until nobody plays beside it, and the sums of
all of them are added up.
"""

from __future__ import annotations

import datetime
import fcntl
import os
import platform
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.field_ledger import LEDGER
from support.field_report import Run, cases_in, markdown, write_between_marks
from support.field_scale import SAMPLE, Scale

SOAK = os.environ.get("LLAMASWAP_SOAK") == "1"
REPORT = os.environ.get("LLAMASWAP_SOAK_REPORT", "")
COMMAND = os.environ.get("LLAMASWAP_SOAK_COMMAND", "make soak")
HERE = Path(__file__).parent
LONG = 10.0  # seconds: a case that takes longer begins early

played: Counter[str] = Counter()
numbers: set[str] = set()
began = time.monotonic()


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marks by which a soak is ordered, and that of cases that only a soak plays."""
    for line in (
        "soak(seconds): so long at full length; skipped in an ordinary run",
        "lasts(seconds): so long at full length, though not in an ordinary run",
        "alone: measures what others would disturb: in a soak nothing is played beside it",
    ):
        config.addinivalue_line("markers", line)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put a soak into its order; leave out of an ordinary run what only a soak plays."""
    if SOAK:
        items.sort(key=turn)
        return
    for item in items:
        if item.get_closest_marker("soak") is not None:
            item.add_marker(pytest.mark.skip(reason="only in a soak: LLAMASWAP_SOAK=1"))


def turn(item: pytest.Item) -> tuple[int, float]:
    """First the longest cases, then what needs a processor all the time, in the end those that play alone."""
    if item.path.parent != HERE:
        return 1, 0.0
    if item.get_closest_marker("alone"):
        return 3, 0.0
    marks = [mark for name in ("lasts", "soak") if (mark := item.get_closest_marker(name))]
    seconds = max((float(mark.kwargs["seconds"]) for mark in marks), default=0.0)
    return (0, -seconds) if seconds >= LONG else (2, 0.0)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add the sums of a worker that is done; one that crashed has told nothing."""
    told = getattr(node, "workeroutput", {}).get("ledger")
    if told is not None:
        LEDGER.add(told)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the sums to whoever adds them up; a soak that has lost something has failed."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["ledger"] = LEDGER.told()
    elif SOAK and LEDGER.wrong() and not session.exitstatus:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count what became of each test."""
    if report.when == "call" or report.outcome != "passed":
        word = "failed as expected" if hasattr(report, "wasxfail") else report.outcome
        played[word] += 1
        if report.outcome == "passed":
            numbers.update(cases_in(report.nodeid))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
    """Say what a soak came to; a document is told of one that went well."""
    if not SOAK or not LEDGER.daemons or hasattr(terminalreporter.config, "workerinput"):
        return  # a worker whose master was killed knows its own part only
    table = markdown(_run(), LEDGER)
    terminalreporter.section("what the soak came to")
    terminalreporter.write_line(table)
    for words in LEDGER.wrong():
        terminalreporter.write_line(words, red=True)
    if REPORT and exitstatus == pytest.ExitCode.OK and not LEDGER.wrong():
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
def its_neighbours(request: pytest.FixtureRequest) -> Iterator[None]:
    """In a soak, wait for who has to be alone: he holds the lock for himself, all others share it."""
    if not SOAK:
        yield
        return
    alone = request.node.get_closest_marker("alone")
    with Path(__file__).open() as door:  # any file will do that all workers see
        fcntl.flock(door, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


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
