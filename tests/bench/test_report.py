"""The tables that a document shows of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.report import BEGIN, END, fill, markdown

RESULTS = {
    "figures": {
        "latency": {
            "title": "added latency",
            "unit": "us",
            "contestants": {
                "nginx": {"median": 60.0, "ratio": {"median": 1.0, "low": 1.0, "high": 1.0}},
                "llamaswap": {"median": 111.04, "ratio": {"median": 1.85, "low": 1.6, "high": None}},
            },
            "targets": [
                {"wording": "at most 2 x nginx", "value": 1.85, "met": True},
                {"wording": "at most 1 x nginx", "value": 1.85, "met": False},
                {"wording": "at most a miracle", "value": None, "met": None},
            ],
        }
    }
}


def test_promises_and_figures_are_told() -> None:
    assert markdown(RESULTS).splitlines() == [
        "| promise | found | |",
        "| --- | --- | --- |",
        "| added latency: at most 2 x nginx | 1.85 | kept |",
        "| added latency: at most 1 x nginx | 1.85 | **missed** |",
        "| added latency: at most a miracle | not measured |  |",
        "",
        "| figure | contestant | median | times the reference (lowest .. highest round) |",
        "| --- | --- | --- | --- |",
        "| added latency, us | nginx | 60 | 1.00 (1.00 .. 1.00) |",
        "|  | llamaswap | 111 | 1.85 (1.60 .. ?) |",
    ]


def test_a_document_keeps_its_words_around_the_tables(tmp_path: Path) -> None:
    document, results = tmp_path / "doc.md", tmp_path / "results.json"
    document.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    results.write_text(json.dumps(RESULTS))

    fill(document, results)
    fill(document, results)

    assert document.read_text() == f"before\n{BEGIN}\n\n{markdown(RESULTS)}\n{END}\nafter\n"


def test_a_document_without_marks_is_left_alone(tmp_path: Path) -> None:
    document, results = tmp_path / "doc.md", tmp_path / "results.json"
    document.write_text("no marks\n")
    results.write_text(json.dumps(RESULTS))

    with pytest.raises(ValueError, match="lacks the marks"):
        fill(document, results)
