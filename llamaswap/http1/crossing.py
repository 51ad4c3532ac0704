"""How a response must change on its way from the upstream's hop to the client's.

Pure.  Decides the fields and the framing; moving the bytes is the relay's part.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto

from llamaswap.http1.framing import Framing
from llamaswap.http1.heads import ResponseHead, end_to_end, has_no_body, upgrade_headers

Fields = list[tuple[bytes, bytes]]

_CHUNKED_FIELDS = frozenset({b"transfer-encoding", b"trailer"})


class Crossing(Enum):
    """What happens to the body's bytes."""

    AS_THEY_CAME = auto()
    ENCHUNKED = auto()  # the upstream ends by closing, and the client can be told better
    DECHUNKED = auto()  # the client knows no chunks
    UNTIL_CLOSE = auto()  # as they came; the end of the connection is the only end they have

    @property
    def closes(self) -> bool:
        """Whether the client's connection must end with the body."""
        return self in (Crossing.DECHUNKED, Crossing.UNTIL_CLOSE)


def cross(head: ResponseHead, framing: Framing, *, modern: bool) -> tuple[Fields, Crossing]:
    """Fields for the client, and what becomes of the body.

    Args:
        framing: of the upstream's body.
        modern: the client speaks HTTP/1.1.
    """
    fields = list(end_to_end(head.headers))
    if head.status == 101:
        return [*_without(fields, {b"content-length"}), *upgrade_headers(head.headers)], Crossing.AS_THEY_CAME
    if framing is Framing.CHUNKED:
        if not modern:
            return fields, Crossing.DECHUNKED
        # The chunks cross unchanged and their trailers with them, so what announces both does too.
        fields += [pair for pair in head.headers if pair[0].lower() in _CHUNKED_FIELDS]
    elif framing is Framing.UNTIL_CLOSE:
        if not modern:
            return fields, Crossing.UNTIL_CLOSE
        fields.append((b"Transfer-Encoding", b"chunked"))
        return fields, Crossing.ENCHUNKED
    elif has_no_body(head.status) and head.status != 304:
        fields = _without(fields, {b"content-length"})
    return fields, Crossing.AS_THEY_CAME


def replaced(fields: Fields, added: Iterable[tuple[bytes, bytes]]) -> Fields:
    """`fields` with those in `added` put in the place of all of the same name."""
    added = tuple(added)
    return [*_without(fields, {name.lower() for name, _ in added}), *added]


def _without(fields: Fields, names: set[bytes]) -> Fields:
    return [pair for pair in fields if pair[0].lower() not in names]
