"""The cases of a corpus: how they are read, chosen and put together.

Knows the keys of a case that say where and how long it is played; what happens then is `playing`'s subject.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

FOLDER = Path(__file__).resolve().parents[1]
RECORDED = FOLDER / "http.jsonl"
OURS = FOLDER / "ours.jsonl"

MOST_IN_BATCH = 25
"""Cases on one server: more would keep one worker busy when the others have nothing left to do."""

Case: TypeAlias = dict[str, Any]


def read_corpus(path: Path) -> list[Case]:
    """Every case of a file, in its order."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def chosen(cases: Iterable[Case], only: Sequence[str]) -> list[Case]:
    """The cases that one of these texts names, by `section:N` or a part of the id; all, without texts."""
    return [case for case in cases if not only or any(_names(text, case) for text in only)]


def strictly(cases: Iterable[Case]) -> list[Case]:
    """The same cases with nothing accepted but what was recorded."""
    return [{key: value for key, value in case.items() if key not in {"better", "ours"}} for case in cases]


def accepted(case: Case, step: int) -> list[dict[str, Any]]:
    """The answers to a step that pass, the recorded one first."""
    answers = [case["expect"][step]]
    if case.get("quirk") and case.get("better"):
        answers.append(case["better"][step])
    if case.get("ours"):
        answers.append(case["ours"][step])
    return [answer for answer in answers if answer is not None]


def in_batches(cases: Iterable[Case]) -> list[list[Case]]:
    """Put together what may use one server, the longest first, so that nothing long is left at the end."""
    shared: dict[str, list[Case]] = {}
    batches = []
    for case in cases:
        if case.get("share"):
            shared.setdefault(case["config"], []).append(case)
        else:
            batches.append([case])
    for group in shared.values():
        batches += [group[start : start + MOST_IN_BATCH] for start in range(0, len(group), MOST_IN_BATCH)]
    return sorted(batches, key=_length, reverse=True)


def _names(text: str, case: Case) -> bool:
    return text == f"section:{case['section']}" or text in case["id"]


def _length(batch: list[Case]) -> float:
    """A guess at how long a batch takes, in no particular unit."""
    waits_ms: float = sum(step.get("wait_ms", 0) for case in batch for step in case["steps"])
    limit: float = max(case.get("timeout_s", 0) for case in batch)
    return len(batch) / 10 + waits_ms / 1000 + limit
