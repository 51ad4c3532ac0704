"""A changed request body, framed as the one it replaces was."""

from __future__ import annotations

from llamaswap.http1.body import Body
from llamaswap.http1.framing import Framing
from llamaswap.http1.writing import LAST_CHUNK


def reframed(body: Body, content: bytes | None) -> Body:
    """Return a body with other content: chunks stay chunks (one), a length stays a length.

    Args:
        body: as it came.
        content: unframed; None leaves the body as it is, framing included.
    """
    if content is None:
        return body
    pieces = [content]
    if body.framing is not Framing.CHUNKED:
        return Body(Framing.LENGTH, pieces, pieces, len(content))
    chunk = [b"%x\r\n" % len(content), content, b"\r\n"] if content else []  # not copied
    return Body(Framing.CHUNKED, pieces, [*chunk, LAST_CHUNK], len(content))
