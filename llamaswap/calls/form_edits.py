"""Replace the value of one form field: in a query, an urlencoded body or a multipart body.

Pure.  Reading fields is `llamaswap.calls.forms`' part.
"""

from __future__ import annotations

from urllib.parse import quote_from_bytes, unquote_to_bytes

from llamaswap.calls.forms import multipart_places, readable_pairs


def set_query_field(query: bytes, name: str, value: str) -> bytes:
    """Give a field one value in a query or urlencoded body, which is encoded anew with its keys sorted.

    Values of one key keep their order.  A pair that could not be read (a bad
    escape, a semicolon) is not there any more.
    """
    pairs = [(key, text) for key, text in _pairs(query) if key != name.encode()]
    pairs.append((name.encode(), value.encode("utf-8", "replace")))
    pairs.sort(key=lambda pair: pair[0])
    return b"&".join(b"%b=%b" % (_quoted(key), _quoted(text)) for key, text in pairs)


def set_multipart_field(content_type: str, body: bytes, name: str, value: str) -> bytes:
    """Replace every value of a field; all other bytes stay, the boundary included.

    Returns:
        The new body; the very same object when there is no such field.
    """
    places = list(multipart_places(content_type, body, name))
    if not places:
        return body
    pieces: list[bytes | memoryview] = []
    view, text, at = memoryview(body), value.encode("utf-8", "replace"), 0
    for start, end in places:
        pieces += (view[at:start], text)
        at = end
    pieces.append(view[at:])
    return b"".join(pieces)


def _pairs(query: bytes) -> list[tuple[bytes, bytes]]:
    parted = (pair.partition(b"=") for pair in readable_pairs(query))
    return [(_unquoted(key), _unquoted(text)) for key, _, text in parted]


def _unquoted(text: bytes) -> bytes:
    return unquote_to_bytes(text.replace(b"+", b" "))


def _quoted(text: bytes) -> bytes:
    return quote_from_bytes(text, safe=" ").replace(" ", "+").encode()
