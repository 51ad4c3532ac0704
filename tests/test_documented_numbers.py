"""The numbers in the documents are computed: by the scheduler, and by the formula of the score."""

from __future__ import annotations

import json
import re

import pytest

from llamaswap.config.model import SerialSettings
from llamaswap.scheduling.score import Formula, format_thousandths
from llamaswap.scheduling.vocabulary import Ticket, band_of
from support.documents import Table, blocks, read, section, tables
from support.scheduling_setup import serial_box

PRIORITY = "docs/request-priority.md"


def examples() -> list[tuple[str, str, Table]]:
    """The worked examples: title, the sentence before the table, and the table."""
    text = section(PRIORITY, "Worked examples")
    found = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    return [(part.splitlines()[0], part, next(tables(part))) for part in found]


@pytest.mark.parametrize(("title", "text", "table"), examples())
def test_a_worked_example_is_what_the_scheduler_does(title: str, text: str, table: Table) -> None:
    bonus = re.search(r"swapAffinityBonus: (\d+)", text)
    box = serial_box(bonus=int(bonus[1])) if bonus else serial_box()
    busy = re.search(r"box is busy until (\d+) s", text)
    assert busy
    box.fleet.load_time = 20.0
    box.fleet.ready.add("A")
    box.arrive("A", job=float(busy[1]))
    tickets: dict[int, dict[str, str]] = {}
    for row in sorted(table, key=lambda row: float(row["arrives"])):
        box.advance_to(float(row["arrives"]))
        ticket = box.arrive(row["model"], int(row["priority"]), job=float(row["runs"]))
        tickets[ticket.number] = row

    box.settle()

    assert [tickets[number]["request"] for number in box.dispatched[1:]] == [row["request"] for row in table]
    for number, row in tickets.items():
        verdict = box.verdicts[number]
        told = (float(row["goes at"]), float(row["waited"]), row["score"])
        assert (box.dispatched_at[number], verdict.waited, verdict.score) == told, row["request"]


def test_the_examples_say_how_long_a_load_takes() -> None:
    assert len(examples()) >= 5
    assert "a load takes 20 s" in " ".join(section(PRIORITY, "Worked examples").split())


def rows() -> list[dict[str, str]]:
    """The metadata of every activity row that a document shows."""
    return [json.loads(block.text)["metadata"] for block in blocks("json")]


@pytest.mark.parametrize("metadata", rows())
def test_a_score_that_a_document_shows_is_the_formulas(metadata: dict[str, str]) -> None:
    waited = int(metadata["serial_queue_wait_ms"]) / 1000
    ticket = Ticket(number=1, model="A", priority=int(metadata["serial_priority"]), arrived=0.0)
    formula = Formula.of(SerialSettings())

    score = formula.thousandths(ticket, waited, resident=metadata["serial_load_ms"] == "0")

    assert metadata["serial_score"] == format_thousandths(score)
    assert metadata["serial_band"] == band_of(ticket.priority).value


def test_the_seconds_of_band_and_window_follow_from_the_defaults() -> None:
    serial = SerialSettings()
    head_start = 100 * serial.aging_divisor
    window = serial.swap_affinity_bonus * serial.aging_divisor
    line = f"band_head_start={head_start:g}s affinity_window={window:g}s"
    text = " ".join(read(PRIORITY).split())

    assert line in text
    assert line in read("README.md")
    assert f"a head start of {head_start:g} seconds" in text
    assert f"up to {window:g} seconds earlier" in text
