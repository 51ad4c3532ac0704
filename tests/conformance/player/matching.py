"""JSON as it should be against JSON as it is.

Objects match as subsets, lists item by item; objects with one key that begins with `$` are rules.
Every function returns the first difference as a text, '' when there is none.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

ABSENT = {"$absent": True}

_NEAR = 1e-6  # of the number itself


def difference(want: Any, have: Any, where: str = "$") -> str:
    """The first difference."""
    if isinstance(want, dict):
        name = next(iter(want)) if len(want) == 1 else ""
        if name in _RULES:
            return _RULES[name](want[name], have, where)
        return _object(want, have, where)
    if isinstance(want, list):
        return _list(want, have, where)
    same = want is have if want is None or isinstance(want, bool) or isinstance(have, bool) else want == have
    return _unless(same, f"{where}: {have!r} is not {want!r}")


def _object(want: dict[str, Any], have: Any, where: str) -> str:
    if not isinstance(have, dict):
        return f"{where}: {have!r} is no object"
    for key, value in want.items():
        if value == ABSENT:
            found = f"{where}.{key}: there ({have[key]!r})" if key in have else ""
        elif key not in have:
            found = f"{where}.{key}: missing in {have!r}"
        else:
            found = difference(value, have[key], f"{where}.{key}")
        if found:
            return found
    return ""


def _list(want: list[Any], have: Any, where: str) -> str:
    if not isinstance(have, list) or len(have) != len(want):
        return f"{where}: {have!r} is not a list of {len(want)}"
    pairs = enumerate(zip(want, have, strict=True))
    found = (difference(one, other, f"{where}[{number}]") for number, (one, other) in pairs)
    return next(filter(None, found), "")


def _unless(fine: bool, text: str) -> str:
    return "" if fine else text


def _is_number(have: Any) -> bool:
    return isinstance(have, (int, float)) and not isinstance(have, bool)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "int": lambda have: isinstance(have, int) and not isinstance(have, bool),
    "num": _is_number,
    "str": lambda have: isinstance(have, str),
    "bool": lambda have: isinstance(have, bool),
    "list": lambda have: isinstance(have, list),
    "object": lambda have: isinstance(have, dict),
    "null": lambda have: have is None,
}


def _re(pattern: str, have: Any, where: str) -> str:
    text = have if isinstance(have, str) else json.dumps(have)
    return _unless(bool(re.search(pattern, text, re.DOTALL)), f"{where}: {have!r} does not match {pattern!r}")


def _type(names: str, have: Any, where: str) -> str:
    return _unless(any(_TYPES[name](have) for name in names.split("|")), f"{where}: {have!r} is no {names}")


def _bag(want: list[Any], have: Any, where: str) -> str:
    if not isinstance(have, list) or len(have) != len(want):
        return f"{where}: {have!r} is not a list of {len(want)}"
    left = list(have)
    for one in want:
        at = next((number for number, other in enumerate(left) if not difference(one, other)), None)
        if at is None:
            return f"{where}: nothing like {one!r} in {left!r}"
        del left[at]
    return ""


def _has(want: list[Any], have: Any, where: str) -> str:
    missing = (one for one in want if all(difference(one, other) for other in have))
    return next((f"{where}: nothing like {one!r} in {have!r}" for one in missing), "")


def _near(want: float, have: Any, where: str) -> str:
    fine = _is_number(have) and abs(have - want) <= _NEAR * max(1, abs(want))
    return _unless(fine, f"{where}: {have!r} is not near {want!r}")


def _min(want: float, have: Any, where: str) -> str:
    return _unless(_is_number(have) and have >= want, f"{where}: {have!r} is not at least {want!r}")


def _json(want: Any, have: Any, where: str) -> str:
    try:
        inner = json.loads(have)
    except (ValueError, TypeError):
        return f"{where}: {have!r} is not JSON"
    return difference(want, inner, f"{where}(json)")


def _b64(want: str, have: Any, where: str) -> str:
    fine = isinstance(have, str) and base64.b64decode(have) == want.encode()
    return _unless(fine, f"{where}: {have!r} is not base64 of {want!r}")


def _b64json(want: Any, have: Any, where: str) -> str:
    try:
        return _json(want, base64.b64decode(have), where)
    except (ValueError, TypeError):
        return f"{where}: {have!r} is not base64"


_RULES: Mapping[str, Callable[[Any, Any, str], str]] = {
    "$re": _re,
    "$type": _type,
    "$bag": _bag,
    "$has": _has,
    "$near": _near,
    "$min": _min,
    "$json": _json,
    "$b64": _b64,
    "$b64json": _b64json,
}
