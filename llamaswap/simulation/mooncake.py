"""Mooncake's traces: one JSON object a line, with `timestamp` in milliseconds and two lengths in tokens.

Knows one line; neither files nor what the numbers come to.  The hashes of the prompt's blocks are not read:
the scheduler does not know of prompt caches.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from llamaswap.simulation.records import MOST_TOKENS, BadLine, Record

_Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]


class _Line(msgspec.Struct):
    timestamp: Annotated[float, msgspec.Meta(ge=0, le=1e18)]  # ms
    input_length: _Count
    output_length: _Count


_decode = msgspec.json.Decoder(_Line).decode


def record_of(line: bytes) -> Record:
    """Read one line.

    Raises:
        BadLine: it is no JSON object, lacks one of the three, or has nonsense in it.
    """
    try:
        read = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadLine(str(error)) from None
    return Record(at=read.timestamp / 1000, prompt=read.input_length, generated=read.output_length)
