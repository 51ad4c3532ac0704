"""Which format a file has, and its lines one after the other."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from llamaswap.simulation.records import Unusable
from llamaswap.simulation.traces import Format, detect, open_trace, records, refuse
from support.traces import (
    ARRIVALS,
    AZURE_2023,
    AZURE_2024,
    BURSTGPT_1,
    BURSTGPT_3,
    MOONCAKE,
    dispatched,
    store,
    written,
)

TEXTS = [
    (AZURE_2023, Format.AZURE),
    (AZURE_2024, Format.AZURE),
    (BURSTGPT_1, Format.BURSTGPT),
    (BURSTGPT_3, Format.BURSTGPT),
    (MOONCAKE, Format.MOONCAKE),
    (ARRIVALS, Format.ARRIVALS),
]


@pytest.mark.parametrize(("text", "known"), TEXTS)
def test_a_format_is_told_by_the_first_line_and_both_lines_are_read(
    tmp_path: Path, text: str, known: Format
) -> None:
    path = written(tmp_path, "trace", text)

    assert detect(path) is known
    assert len(list(records(open_trace(str(path)), refuse))) == 2


@pytest.mark.parametrize(("text", "known"), TEXTS)
def test_blank_lines_other_ends_and_a_byte_order_mark_do_no_harm(
    tmp_path: Path, text: str, known: Format
) -> None:
    mark = "" if known is Format.MOONCAKE else "\ufeff"
    path = tmp_path / "trace"
    path.write_bytes((mark + text).replace("\n", "\r\n\r\n").encode())

    assert detect(path) is known
    assert len(list(records(open_trace(str(path)), refuse))) == 2


@pytest.mark.parametrize(("text", "known"), TEXTS)
def test_a_compressed_file_is_unpacked_in_passing(tmp_path: Path, text: str, known: Format) -> None:
    path = tmp_path / "trace.gz"
    path.write_bytes(gzip.compress(text.encode()))

    assert detect(path) is known
    assert len(list(records(open_trace(str(path)), refuse))) == 2


def test_a_store_is_told_by_its_first_bytes(tmp_path: Path) -> None:
    path = store(tmp_path / "a.db", [dispatched(1000, "chat", 5, 0, 0)])

    trace = open_trace(str(path))

    assert trace.format is Format.STORE
    assert [one.model for one in records(trace, refuse)] == ["chat"]


def test_a_trace_is_called_by_its_label_or_by_its_name(tmp_path: Path) -> None:
    path = written(tmp_path, "conv.2023.csv", AZURE_2023)
    odd = written(tmp_path, "a=b.csv", AZURE_2023)

    assert open_trace(str(path)).label == "conv"
    assert open_trace(f"talk={path}").label == "talk"
    assert open_trace(f"talk={path}").path == path
    assert open_trace(str(odd)).path == odd


@pytest.mark.parametrize("content", [b"", b"\n\n", b"a,b,c\n1,2,3\n", b"\xff\xfe\x00", b'"'])
def test_what_has_no_known_format_is_refused_with_the_formats_that_are(
    tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "x").write_bytes(content)

    with pytest.raises(Unusable, match=r"x:1: no trace of a known format: arrivals \(arrival_s,model"):
        detect(tmp_path / "x")


@pytest.mark.parametrize("name", ["missing", "."])
def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(Unusable, match=r"No such file|Is a directory"):
        open_trace(str(tmp_path / name))


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (ARRIVALS, "3,chat,urgent,1,,", "priority: expected a whole number"),
        (ARRIVALS, "3,chat,0", "expected 6 columns, got 3"),
        (AZURE_2023, "soon,1,1", "TIMESTAMP: expected a date and time, got 'soon'"),
        (BURSTGPT_1, "9,GPT-4,many,1,2,API log", "Request tokens: expected a number, got 'many'"),
        (MOONCAKE, '{"timestamp": 1}', "Object missing required field `input_length`"),
        (ARRIVALS, "3," + "x" * 200_000 + ",0,1,,", "field larger than field limit"),
    ],
)
def test_a_bad_line_is_named_by_its_place_or_left_out(tmp_path: Path, text: str, line: str, why: str) -> None:
    last = text.splitlines()[-1]
    path = written(tmp_path, "trace", f"{text}{line}\n{last}\n")
    trace, place = open_trace(str(path)), len(text.splitlines()) + 1
    told: list[str] = []

    with pytest.raises(Unusable) as refused:
        list(records(trace, refuse))
    kept = list(records(trace, told.append))

    assert str(refused.value).startswith(f"{path}:{place}: {why}")
    assert "--skip-bad" in str(refused.value)
    assert len(kept) == 3
    assert [one.startswith(f"{path}:{place}: {why}") for one in told] == [True]


def test_a_file_that_ends_too_early_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.gz"
    path.write_bytes(gzip.compress((ARRIVALS + "3,chat,0,1,,\n" * 5000).encode())[:-20])

    with pytest.raises(Unusable, match="end-of-stream"):
        list(records(open_trace(str(path)), refuse))
