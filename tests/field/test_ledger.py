"""The summary of a soak tells what was done and what became of it."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import fields
from pathlib import Path

import pytest

from support.field import Field
from support.field_ledger import LEDGER, Extreme, Ledger
from support.field_report import BEGIN, END, Run, cases_in, markdown, write_between_marks

pytestmark = pytest.mark.integration

RUN = Run(
    command="make soak", day="2026-11-29", machine="a box", seconds=60.0, outcomes={"passed": 2}, cases=1
)


def test_faults_requests_and_recoveries_are_counted(tmp_path: Path) -> None:
    before = Ledger(
        requests=LEDGER.requests.copy(), faults=LEDGER.faults.copy(), recoveries=LEDGER.recoveries
    )
    with Field(tmp_path, {"A": "--die-at 0.5,- --counter {folder}/starts --load 0,0.3"}) as field:
        field.chat("A")
        field.until(lambda: not field.running(), "its end")
        assert field.chat("A").ok
        field.send("A", stub={"first": 5.0}).leave("rst", after=0.2).wait()
        assert field.chat("A", stream=True, stub={"drop_at": 1}).status == 200
        os.kill(field.daemon.pid, signal.SIGHUP)
        field.until(lambda: field.log("service.reloaded"), "the reload")

    requests, faults = LEDGER.requests - before.requests, LEDGER.faults - before.faults
    assert requests == {"sent": 4, "answered": 2, "left by its client": 1, "cut off so that it shows": 1}
    assert faults["server crashed by itself"] == 1
    assert faults["client left (RST)"] == 1
    assert faults["connection to a server closed in an answer"] == 1
    assert faults["signal SIGHUP from outside"] == 1
    assert LEDGER.recoveries == before.recoveries + 1
    assert LEDGER.recovery.value >= 0.3


def test_the_table_is_written_between_its_marks_and_nowhere_else(tmp_path: Path) -> None:
    ledger = Ledger(daemons=3)
    ledger.requests.update({"sent": 5, "lost": 1, "answered": 4})
    ledger.faults["signal SIGKILL from outside"] = 2
    document = tmp_path / "reliability.md"
    document.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")

    write_between_marks(document, markdown(RUN, ledger))
    written = document.read_text()
    assert written.startswith("before\n") and written.endswith("\nafter\n")
    assert "old" not in written
    assert "| requests lost | 1 |" in written
    assert "| - signal SIGKILL from outside | 2 |" in written

    document.write_text("no marks")
    with pytest.raises(ValueError):
        write_between_marks(document, "table")


def test_what_several_processes_tell_is_added_up() -> None:
    ours, theirs = Ledger(case="ours", daemons=1, recoveries=2), Ledger(case="theirs", daemons=3)
    for ledger, grown in ((ours, 1000), (theirs, 2000)):
        ledger.requests.update({"sent": 2, "answered": 1})
        ledger.grown(grown, 4 - grown // 1000)
    ours.faults["server crashed by itself"] = 1
    theirs.losses.append("a request")
    theirs.leaked(["serve", "a"])
    theirs.notes["a day"] = "nothing"

    ours.add(json.loads(json.dumps(theirs.told())))

    assert (ours.daemons, ours.recoveries) == (4, 2)
    assert ours.requests == {"sent": 4, "answered": 2}
    assert ours.faults == {"server crashed by itself": 1}
    assert (ours.memory, ours.descriptors) == (Extreme(2000, "theirs"), Extreme(3, "ours"))
    assert ours.recovery == Extreme()
    assert ours.notes == {"a day": "nothing"}
    assert ours.wrong() == ["a request", "theirs: left behind: serve a", "processes leaked: 1"]


def test_every_sum_of_a_ledger_is_told() -> None:
    names = {field.name for field in fields(Ledger)}

    assert Ledger().told().keys() == names - {"case", "closing"}


def test_a_request_that_got_no_answer_from_a_daemon_that_lives_is_lost_and_named(tmp_path: Path) -> None:
    with Field(tmp_path, {"A": ""}) as field:
        call = field.send("A", stub={"hang": True})
        field.until(lambda: field.records("arrived"), "it at work")
        call.client._finish("closed")
        seen = Ledger(case="this one")
        seen.ended([call], field.notes(), alive=True)
        call.client.left_at = time.monotonic()

    assert seen.requests == {"sent": 1, "lost": 1}
    assert len(seen.wrong()) == 1
    assert "this one: /v1/chat/completions of A" in seen.wrong()[0]


def test_a_test_may_be_about_several_cases() -> None:
    assert cases_in("test_case_052_and_053_whoever_waits") == {"052", "053"}
    assert cases_in("tests/field/test_y.py::test_case_017_018_time_to_live[030_a]") == {"017", "018"}
    assert cases_in("tests/field/test_x.py::test_case_009_and_10_times") == {"009"}
    assert cases_in("test_words_that_are_missing") == set()
