"""The numbers in the documents are computed: by the scheduler, and by the formula of the score."""

from __future__ import annotations

import json
import re

import pytest

from llamaswap.activity.backlog import MOST_WAITING
from llamaswap.calls.forms import MOST_FORM_BYTES, MOST_PAIRS, MOST_PART_HEAD_BYTES, MOST_PARTS
from llamaswap.ceilings import HELD_SHARE, LEAST_HELD
from llamaswap.config.model import LimitsConfig, SerialSettings
from llamaswap.http1.body import CONTENT_PER_CHUNKING, MOST_CHUNKING_BYTES
from llamaswap.http1.hosting import Limits
from llamaswap.http1.parsing import MOST_FIELDS
from llamaswap.http1.relay import HIGH_WATER_BYTES
from llamaswap.http1.upstream import MAX_HEAD_BYTES
from llamaswap.metering.events import LONGEST_LINE
from llamaswap.metering.meter import LARGEST_BODY
from llamaswap.processes.logbook import HISTORY_BYTES
from llamaswap.scheduling.score import Formula, format_thousandths
from llamaswap.scheduling.vocabulary import Ticket, band_of
from llamaswap.web.events import MOST_BYTES, MOST_MESSAGES
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
    shown = (json.loads(block.text) for block in blocks("json"))
    return [row["metadata"] for row in shown if "metadata" in row]


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


DEMONSTRATED = re.compile(
    r" *(?P<number>[0-9]+) +(?P<sent>[0-9.]+)s .* (?P<waited>[0-9.]+)s +(?P<priority>-?[0-9]+)"
    r" +\+ (?P<affinity>[0-9]+) +\+ (?P<aging>[0-9.]+) +=(?P<score> -?[0-9.]+) +(?P<recorded>-?[0-9.]+) .*"
)


def test_the_demonstration_adds_up() -> None:
    (block,) = (block for block in blocks("text") if "what the formula says" in block.text)
    lines = [match for line in block.text.splitlines() if (match := DEMONSTRATED.fullmatch(line))]

    assert f"All {len(lines)} picks" in block.text
    for line in lines:
        score = int(line["priority"]) + int(line["affinity"]) + float(line["aging"])
        assert float(line["score"]) == pytest.approx(score, abs=0.11), line[0]
        assert float(line["recorded"]) == pytest.approx(score, abs=0.11), line[0]
        assert float(line["aging"]) == pytest.approx(float(line["waited"]) / 0.1, abs=0.11), line[0]


UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "s": 1, "": 1}


def quantities(text: str) -> list[float]:
    """The numbers of a text, in bytes and seconds."""
    return [int(number) * UNITS[unit] for number, unit in re.findall(r"\b([0-9]+) ?([KMG]iB|s\b|)", text)]


def test_the_limits_are_those_of_the_code() -> None:
    (table,) = tables(section("docs/operations.md", "Limits"))
    told = {row["what"]: quantities(row["limit"]) for row in table}
    limits = Limits()

    assert told["head of a request"] == [limits.head_bytes, MOST_FIELDS]
    assert told["time for a head"] == [limits.head_seconds]
    assert told["body of a request"] == [limits.body_bytes]
    assert told["time without a byte of a body"] == [limits.body_seconds]
    assert told["idle connection"] == [limits.idle_seconds]
    assert told["bodies of all requests together"] == [LEAST_HELD]
    assert "a quarter" in " ".join(row["limit"] for row in table)
    assert HELD_SHARE == 4
    assert told["head of an upstream's response, and its interim ones (1xx) together"] == [
        MAX_HEAD_BYTES,
        MOST_FIELDS,
    ]
    assert told["answer held for a client that reads slowly"] == [HIGH_WATER_BYTES]
    assert told["messages for a reader of `/api/events"] == [MOST_MESSAGES, MOST_BYTES]
    assert told["requests that wait"] == [LimitsConfig().waiting]
    assert told["readers of `/api/events` and `/logs/stream"] == [LimitsConfig().readers]
    assert (LimitsConfig().request_body, LimitsConfig().slow_client) == (limits.body_bytes, HIGH_WATER_BYTES)
    assert told["log kept in memory"] == [HISTORY_BYTES]
    assert told["rows that wait for a failing disk"] == [MOST_WAITING]
    assert told["framing of a body in chunks"][0] == MOST_CHUNKING_BYTES
    assert CONTENT_PER_CHUNKING == 32
    assert told["urlencoded form"] == [MOST_FORM_BYTES, MOST_PAIRS]
    assert told["multipart form"] == [MOST_PARTS, MOST_PART_HEAD_BYTES]
    assert told["answer that is metered"] == [LARGEST_BODY, LONGEST_LINE]
