"""The bytes of an answer, understood.

Pure: framing, and whether an answer is complete by it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

NO_BODY = frozenset({204, 304})
INFORMATIONAL = frozenset({100, 102, 103})
SWITCHING = 101

Fields = tuple[tuple[str, str], ...]


class NotHttp(Exception):
    """The bytes are no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back to one request.

    `end`: `clean` by its framing, `short` when it was cut off, `open` when we hung up, and
    `closed` when the connection ended without an answer, or as a tunnel.
    """

    status: int = 0
    headers: Fields = ()
    trailers: Fields = ()
    body: bytes = b""
    end: str = "clean"
    raw: bytes = b""
    took: float = 0.0


def parse(received: bytes, method: str, *, closed: bool) -> Answer | None:
    """The answer that begins with these bytes; None while its head is not complete.

    Args:
        received: everything so far, interim answers included.
        method: of the request.
        closed: whether no more will come.

    Raises:
        NotHttp: these bytes are no answer.
    """
    head, separator, rest = received.partition(b"\r\n\r\n")
    if not separator:
        return None
    try:
        answer = _head(head)
        if answer.status in INFORMATIONAL:
            return parse(rest, method, closed=closed)
        return replace(_with_body(answer, rest, method, closed), raw=received)
    except ValueError as error:
        raise NotHttp(f"{error} in {received[:200]!r}") from error


def _head(head: bytes) -> Answer:
    start, *lines = head.decode("utf-8", "surrogateescape").split("\r\n")
    _, status, *_ = start.split(" ")
    return Answer(status=int(status), headers=_fields(lines))


def _fields(lines: list[str]) -> Fields:
    split = [line.partition(":") for line in lines]
    return tuple((name.strip(), value.strip()) for name, _, value in split)


def _with_body(answer: Answer, rest: bytes, method: str, closed: bool) -> Answer:
    fields = {name.lower(): value for name, value in answer.headers}
    if answer.status == SWITCHING:
        return replace(answer, body=rest, end="closed" if closed else "open")
    if method == "HEAD" or answer.status in NO_BODY:
        return answer
    if "chunked" in fields.get("transfer-encoding", "").lower():
        return _chunked(answer, rest)
    if "content-length" in fields:
        length = int(fields["content-length"])
        return replace(answer, body=rest[:length], end="clean" if len(rest) >= length else "short")
    return replace(answer, body=rest, end="clean" if closed else "short")


def _chunked(answer: Answer, rest: bytes) -> Answer:
    body = b""
    while True:
        line, newline, rest = rest.partition(b"\r\n")
        if not newline:
            return replace(answer, body=body, end="short")
        size = int(line.partition(b";")[0], 16)
        if not size:
            return _with_trailers(replace(answer, body=body), rest)
        body += rest[:size]
        if len(rest) < size + 2:
            return replace(answer, body=body, end="short")
        rest = rest[size + 2 :]


def _with_trailers(answer: Answer, rest: bytes) -> Answer:
    if rest.startswith(b"\r\n"):
        return answer
    block, separator, _ = rest.partition(b"\r\n\r\n")
    if not separator:
        return replace(answer, end="short")
    return replace(answer, trailers=_fields(block.decode("latin-1").split("\r\n")))
