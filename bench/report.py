"""What a run of the bench found, as the tables of `docs/performance.md`.

Knows the layout of `results.json`; measures nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

BEGIN = "<!-- figures: written by make bench -->"
END = "<!-- end of the figures -->"


def fill(document: Path, results: Path) -> None:
    """Write the tables of a run between the marks of a document.

    Raises:
        ValueError: the document lacks the marks.
    """
    text = document.read_text("utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{document} lacks the marks {BEGIN} and {END}")
    tables = markdown(json.loads(results.read_text("utf-8")))
    document.write_text(f"{before}{BEGIN}\n\n{tables}\n{END}{after}", "utf-8")


def markdown(results: Mapping[str, Any]) -> str:
    """Return two tables: the promises, and every figure of every contestant."""
    lines = ["| promise | found | |", "| --- | --- | --- |"]
    lines += [row for figure in results["figures"].values() for row in _promises(figure)]
    lines += ["", "| figure | contestant | median | times the reference (lowest .. highest round) |"]
    lines += ["| --- | --- | --- | --- |"]
    lines += [row for figure in results["figures"].values() for row in _figures(figure)]
    return "\n".join(lines) + "\n"


def _promises(figure: Mapping[str, Any]) -> Iterator[str]:
    for target in figure["targets"]:
        found = "not measured" if target["value"] is None else f"{target['value']:.2f}"
        verdict = {True: "kept", False: "**missed**", None: ""}[target["met"]]
        wording = target["wording"]
        promise = f"{figure['title']}: {wording}" if wording.startswith("at most") else wording
        yield f"| {promise} | {found} | {verdict} |"


def _figures(figure: Mapping[str, Any]) -> Iterator[str]:
    title = f"{figure['title']}, {figure['unit']}"
    for name, contestant in figure["contestants"].items():
        ratio = contestant.get("ratio")
        shown = "" if not ratio or ratio["median"] is None else _times(ratio)
        yield f"| {title} | {name} | {contestant['median']:.4g} | {shown} |"
        title = ""


def _times(ratio: Mapping[str, float]) -> str:
    low, high = (f"{ratio[key]:.2f}" if ratio[key] is not None else "?" for key in ("low", "high"))
    return f"{ratio['median']:.2f} ({low} .. {high})"
