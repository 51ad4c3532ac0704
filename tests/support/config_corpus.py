"""The recorded facts about configurations, and how ours are held against one."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

CORPUS = Path(__file__).parents[1] / "conformance" / "config.jsonl"

Case = dict[str, Any]


def read_corpus() -> tuple[Case, ...]:
    """Every recorded case, in the file's order."""
    with CORPUS.open(encoding="utf-8") as lines:
        return tuple(json.loads(line) for line in lines)


def lay_out(case: Case, folder: Path) -> None:
    """Write a case's files and links into an empty folder."""
    for name, text in (case.get("files") or {}).items():
        path = folder / name
        if name.endswith("/"):
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode("utf-8"))
    for name, target in (case.get("links") or {}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)


def accepted(case: Case) -> list[dict[str, Any]]:
    """What passes: the recorded behaviour, or one of the better ones."""
    return [case["expect"], *case.get("better", [])]


def differences(want: Any, have: Any, where: str = "") -> Iterator[str]:
    """Where a value of ours is not the recorded one; nothing when they agree."""
    want, have = _unwrapped(want), _unwrapped(have)
    if isinstance(want, dict) and isinstance(have, dict):
        for key in sorted(want.keys() | have.keys()):
            yield from differences(want.get(key), have.get(key), f"{where}.{key}")
    elif isinstance(want, list) and isinstance(have, list) and len(want) == len(have):
        for number, (one, other) in enumerate(zip(want, have, strict=True)):
            yield from differences(one, other, f"{where}[{number}]")
    elif not _same(want, have):
        yield f"{where}: recorded {want!r}, ours {have!r}"


def _unwrapped(want: Any) -> Any:
    """The corpus' escape of odd floats."""
    if not isinstance(want, Mapping):
        return want
    if want.keys() == {"$float"}:
        return float(want["$float"])
    return dict(want)


def _same(want: Any, have: Any) -> bool:
    if isinstance(want, bool) != isinstance(have, bool):
        return False
    if isinstance(want, float) and math.isnan(want):
        return isinstance(have, float) and math.isnan(have)
    return bool(want == have)
