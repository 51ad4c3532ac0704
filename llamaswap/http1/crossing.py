"""How a response must change on its way from the upstream's hop to the client's.

Pure.  Decides the fields, the framing and which content coding is undone;
moving the bytes is the delivery's part.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum, auto

from llamaswap.http1.framing import Framing
from llamaswap.http1.heads import Headers, ResponseHead, crossing_fields, has_no_body, upgrade_headers

Fields = list[tuple[bytes, bytes]]

_CHUNKED_FIELDS = frozenset({b"transfer-encoding", b"trailer"})

# The codings that we can undo, by all their names.
_CODINGS = {b"gzip": b"gzip", b"x-gzip": b"gzip", b"deflate": b"deflate"}

_REFUSED = re.compile(rb"q[ \t]*=[ \t]*0(?:\.0*)?")

PARTIAL_CONTENT = 206


class Crossing(Enum):
    """What happens to the body's bytes."""

    AS_THEY_CAME = auto()
    ENCHUNKED = auto()  # the upstream ends by closing, and the client can be told better
    DECHUNKED = auto()  # bare: the client knows no chunks
    RECHUNKED = auto()  # bare, then in chunks of our own: what is in them is not what came
    UNTIL_CLOSE = auto()  # as they came; the end of the connection is the only end they have

    @property
    def bare(self) -> bool:
        """Whether the upstream's framing is taken off."""
        return self in (Crossing.DECHUNKED, Crossing.RECHUNKED)

    @property
    def closes(self) -> bool:
        """Whether the client's connection must end with the body."""
        return self in (Crossing.DECHUNKED, Crossing.UNTIL_CLOSE)


def cross(
    head: ResponseHead, framing: Framing, *, modern: bool, unpacked: bool = False
) -> tuple[Fields, Crossing]:
    """Fields for the client, and what becomes of the body.

    Args:
        framing: of the upstream's body.
        modern: the client speaks HTTP/1.1.
        unpacked: the body's content coding is undone on the way.
    """
    fields = crossing_fields(head)
    if head.status == 101:
        return [*_without(fields, {b"content-length"}), *upgrade_headers(head.headers)], Crossing.AS_THEY_CAME
    if unpacked:
        fields = _without(fields, {b"content-encoding", b"content-length"})
        if not modern:
            return fields, Crossing.DECHUNKED
        return [*fields, (b"Transfer-Encoding", b"chunked")], Crossing.RECHUNKED
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


def coding_to_undo(asked: Headers, head: ResponseHead, framing: Framing) -> bytes | None:
    """The content coding that the client did not say it takes; None leaves the body as it is.

    Args:
        asked: the client's fields.
        framing: of the upstream's body.

    Returns:
        gzip or deflate: no other can be undone here.
    """
    said = [value for name, value in head.headers if name.lower() == b"content-encoding"]
    coding = _CODINGS.get(said[0].lower()) if len(said) == 1 else None
    if coding is None or framing is Framing.NONE or head.status == 101:
        return None
    if head.status == PARTIAL_CONTENT:  # a part of coded bytes cannot be read by itself
        return None
    if framing is Framing.LENGTH and not (head.get(b"content-length") or b"").strip(b"0"):
        return None
    return None if _accepts(asked, coding) else coding


def replaced(fields: Fields, added: Iterable[tuple[bytes, bytes]]) -> Fields:
    """`fields` with those in `added` put in the place of all of the same name."""
    added = tuple(added)
    if not added:
        return fields
    return [*_without(fields, {name.lower() for name, _ in added}), *added]


def _accepts(asked: Headers, coding: bytes) -> bool:
    """Whether a client takes this coding; its name counts for more than ``*``."""
    others = False
    for name, wanted in _wishes(asked):
        if _CODINGS.get(name) == coding:
            return wanted
        if name == b"*":
            others = wanted
    return others


def _wishes(asked: Headers) -> Iterator[tuple[bytes, bool]]:
    """Each coding that Accept-Encoding names, and whether it is wanted."""
    for field, value in asked:
        if field.lower() != b"accept-encoding":
            continue
        for item in value.lower().split(b","):
            name, *parameters = (part.strip() for part in item.split(b";"))
            yield name, not any(_REFUSED.fullmatch(parameter) for parameter in parameters)


def _without(fields: Fields, names: set[bytes]) -> Fields:
    return [pair for pair in fields if pair[0].lower() not in names]
