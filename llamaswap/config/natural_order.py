"""The order in which a YAML encoder writes keys: `set9` before `set10`.

The sets of a matrix are considered in this order, whatever the file's is.
"""

from __future__ import annotations

from functools import cmp_to_key

from llamaswap.config.nodes import Plain


def _compare(left: Plain, right: Plain) -> int:
    left_number, right_number = _number(left), _number(right)
    if left_number is not None and right_number is not None:
        return _sign(left_number, right_number)
    if left_number is None and right_number is None:
        return _compare_texts(str(left), str(right))
    return 1 if left_number is None else -1


def _compare_texts(left: str, right: str) -> int:
    pairs = zip(left, right, strict=False)
    at = next((at for at, (one, other) in enumerate(pairs) if one != other), None)
    if at is None:
        return _sign(len(left), len(right))
    letters = left[at].isalpha(), right[at].isalpha()
    if letters == (True, True):
        return _sign(left[at], right[at])
    if letters != (False, False):
        after_digit = at > 0 and left[at - 1].isdecimal()
        return -1 if letters[0] == after_digit else 1
    lead = _lead(left, at) if "0" in (left[at], right[at]) else 0
    left_run, right_run = _run(left, at), _run(right, at)
    one, other = (int(f"{lead}{run}") for run in (left_run, right_run))
    return _sign(one, other) or _sign(len(left_run), len(right_run)) or _sign(left[at], right[at])


def _run(text: str, at: int) -> str:
    """The digits from here on; no name is so long that their number matters."""
    end = at
    while end < len(text) and text[end].isdecimal():
        end += 1
    return text[at:end][:400]


def _lead(text: str, at: int) -> int:
    """1 if digits before this place make a number: then zeros count."""
    start = at
    while start > 0 and text[start - 1].isdecimal():
        start -= 1
    return int(bool(text[start:at].strip("0")))


def _number(value: Plain) -> float | int | None:
    return value if isinstance(value, bool | int | float) else None


def _sign(left: float | str, right: float | str) -> int:
    if isinstance(left, str) or isinstance(right, str):
        return (str(left) > str(right)) - (str(left) < str(right))
    return (left > right) - (left < right)


natural_order = cmp_to_key(_compare)
"""A sort key for the values of keys: numbers and bools by value, then texts."""
