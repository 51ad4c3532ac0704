"""Captures: what was asked and answered, collected in passing.

Pure.  A `Recording` sits beside one exchange and costs it a list append per chunk.  It knows neither where
the bytes come from nor how captures are kept (`llamaswap.metering.captures`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from llamaswap.metering.decoding import BadEncoding, TooMuch, decoder_for
from llamaswap.metering.headers import Headers, shown_headers
from llamaswap.metering.meter import FAILURES

_NO_REQUEST_BODY: Final = frozenset(
    {"/v1/audio/voices", "/v1/audio/transcriptions", "/v1/images/edits", "/sdapi/v1/img2img"}
)
_NO_RESPONSE_BODY: Final = frozenset(
    {
        "/v1/audio/speech",
        "/v1/images/generations",
        "/v1/images/edits",
        "/sdapi/v1/txt2img",
        "/sdapi/v1/img2img",
    }
)
_ENCODING: Final = frozenset({b"content-encoding"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Capture:
    """One exchange; bodies in pieces as they came, () where there is none or none is kept."""

    req_path: str
    req_headers: Mapping[str, str]
    req_body: Sequence[bytes]
    resp_headers: Mapping[str, str]
    resp_body: Sequence[bytes]  # decoded


class Recording:
    """Collects one exchange.

    Call `sent` once, `begin` with the head of the answer, `feed` its body, and `finish` at the end or where
    it broke off.  The pieces of the request are shared with whoever sends them; only those of the answer are
    held for this alone.

    Args:
        req_path: as sent upstream, without the query; it also says which bodies are worth keeping.
        req_headers: the client's.
        most: bytes of both bodies together; an exchange that is larger is not captured.
    """

    __slots__ = (
        "_encoding",
        "_left",
        "_req_body",
        "_req_headers",
        "_req_path",
        "_resp_headers",
        "_seen",
        "_status",
        "_taken",
        "_wanted",
    )

    def __init__(self, *, req_path: str, req_headers: Headers, most: int) -> None:
        self._req_path = req_path
        self._req_headers = req_headers
        self._req_body: Sequence[bytes] = ()
        self._resp_headers: Headers = ()
        self._status = 0
        self._encoding = ""
        self._left = most
        self._seen = 0  # bytes of the answer's body, kept or not
        self._wanted = False
        self._taken: list[bytes] = []

    @property
    def too_large(self) -> bool:
        """Whether the bodies have outgrown `most`; nothing is held any more."""
        return self._left < 0

    def sent(self, body: Iterable[bytes]) -> None:
        """Take the request's body: what the upstream gets, every rewriting done."""
        if self._req_path not in _NO_REQUEST_BODY:
            self._req_body = tuple(body)
            self._spend(sum(map(len, self._req_body)))

    def begin(self, *, status: int, headers: Headers) -> None:
        """Take the head of the answer, as the client gets it; an upstream's or our own."""
        self._status = status
        self._resp_headers = tuple(headers)
        self._encoding = _content_encoding(self._resp_headers)
        self._wanted = 200 <= status < FAILURES and self._req_path not in _NO_RESPONSE_BODY

    def feed(self, data: bytes) -> None:
        """Take body bytes without their chunk framing, still content-encoded."""
        self._seen += len(data)
        if self._wanted and self._left >= 0:
            self._taken.append(data)
            self._left -= len(data)
            if self._left < 0:
                self._let_go()

    def finish(self, *, broke_off: bool = False) -> Capture | None:
        """Return the capture, or None where there is none to keep.

        There is none without a head, for an empty success, for a body that is not what its Content-Encoding
        says, and when the bodies were too large.

        Args:
            broke_off: the answer is not whole; what can be decoded of it counts.
        """
        if not self._status or self.too_large or (200 <= self._status < FAILURES and not self._seen):
            return None
        try:
            body = self._decoded(broke_off=broke_off)
        except (BadEncoding, TooMuch):
            return None
        decodes = decoder_for(self._encoding) is not None
        return Capture(
            req_path=self._req_path,
            req_headers=shown_headers(self._req_headers),
            req_body=self._req_body,
            resp_headers=shown_headers(self._resp_headers, without=_ENCODING if decodes else frozenset()),
            resp_body=body,
        )

    def _decoded(self, *, broke_off: bool) -> Sequence[bytes]:
        decoder = decoder_for(self._encoding) if self._taken else None
        if decoder is None:
            return tuple(self._taken)
        pieces = [piece for data in self._taken for piece in decoder.decode(data)]
        if not broke_off:
            decoder.finish()
        return pieces

    def _spend(self, size_bytes: int) -> None:
        self._left -= size_bytes
        if self._left < 0:
            self._let_go()

    def _let_go(self) -> None:
        self._taken.clear()
        self._req_body = ()


def _content_encoding(headers: Headers) -> str:
    for name, value in headers:
        if name.lower() == b"content-encoding":
            return value.decode("latin-1")
    return ""
