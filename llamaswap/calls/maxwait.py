"""Read the `X-LlamaSwap-Max-Wait` header: how long a request is worth waiting for.

Seconds, whole or not, or a duration as the configuration has them (`30s`).
Anything else says nothing, and costs its sender no answer.
"""

from __future__ import annotations

import re

from llamaswap.config.durations import parse_duration

HEADER = b"x-llamaswap-max-wait"

LONGEST = 1e9  # seconds, 31 years; who would wait longer has no bound

# Not float(): that takes `nan`, `1e400`, `1_0` and other scripts' digits.
_SECONDS = re.compile(rb"0*([0-9]{1,9}(?:\.[0-9]{0,9})?)")
_NANOSECONDS = 1e9


def parse_max_wait(value: bytes | None) -> float | None:
    """Return seconds, from 0; None for a value that is absent, or no time from 0 to LONGEST.

    Blanks and tabs around it are ignored.
    """
    if value is None:
        return None
    text = value.strip(b" \t")
    match = _SECONDS.fullmatch(text)
    if match is not None:
        return float(match[1])
    nanoseconds = parse_duration(text.decode("utf-8", "replace"))
    if nanoseconds is None or not 0 <= nanoseconds <= LONGEST * _NANOSECONDS:
        return None
    return nanoseconds / _NANOSECONDS
