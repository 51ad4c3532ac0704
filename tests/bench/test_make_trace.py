"""The trace that is shipped is the one that its script makes, and tells the story that it should."""

from __future__ import annotations

from collections import Counter
from io import StringIO

from bench.make_trace import HOURS, office, write
from llamaswap.simulation.traces import open_trace, records, refuse
from support.documents import ROOT

SHIPPED = ROOT / "etc" / "traces" / "office.csv"


def test_the_script_makes_what_is_shipped() -> None:
    made = StringIO()

    write(office(), made)

    assert made.getvalue() == SHIPPED.read_text("utf-8")


def test_another_seed_is_another_day() -> None:
    assert office(1) == office(1)
    assert office(1) != office(2)


def test_people_chat_while_batch_work_waits() -> None:
    told = list(records(open_trace(str(SHIPPED)), refuse))
    kinds = Counter((one.model, one.priority) for one in told)

    assert set(kinds) == {("chat", 100), ("coder", 0), ("painter", -100), ("embedder", -100)}
    assert max(one.at for one in told) < HOURS * 3600
    assert SHIPPED.stat().st_size < 200_000
