"""Captures: what was asked and answered.

Pure.  Knows which parts of an exchange are worth keeping and in which form; knows neither where the bytes
come from nor how captures are kept (`llamaswap.metering.captures`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from llamaswap.metering.decoding import BadEncoding, TooMuch, decoder_for
from llamaswap.metering.headers import Headers, shown_headers
from llamaswap.metering.meter import FAILURES

OVERHEAD: Final = 600  # bytes that a capture takes beside its heads and bodies

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
_LENGTH: Final = frozenset({b"content-length"})
_NOTHING: Final[frozenset[bytes]] = frozenset()

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(dict[str, str]).decode


class HeadFields(msgspec.Struct, frozen=True):
    """The fields of a head as a person may see them, without their secrets.

    Most heads are like others but for their Content-Length, so the rest is one object for all of these.
    """

    json: bytes
    length: bytes | None = None  # Content-Length, where it is not in `json`

    @property
    def size_bytes(self) -> int:
        """What they take, though others may share it."""
        return len(self.json)

    def show(self) -> dict[str, str]:
        """Return them by name."""
        shown = _decode(self.json)
        if self.length is not None:
            shown["Content-Length"] = self.length.decode("latin-1")
        return shown


def fields_json(headers: Headers, *, with_length: bool) -> bytes:
    """Return what `HeadFields.json` holds."""
    return _encode(shown_headers(headers, without=_NOTHING if with_length else _LENGTH))


class Capture(msgspec.Struct, frozen=True, kw_only=True):
    """One exchange; bodies in pieces as they came, () where there is none or none is kept."""

    req_path: str
    asked: HeadFields
    req_body: Sequence[bytes]
    answered: HeadFields
    resp_body: Sequence[bytes]  # decoded
    decoded: bool = False  # so the answer no longer has the encoding that its head speaks of

    @property
    def size_bytes(self) -> int:
        """About what it takes as it is."""
        bodies = sum(map(len, self.req_body)) + sum(map(len, self.resp_body))
        return OVERHEAD + self.asked.size_bytes + self.answered.size_bytes + bodies

    def req_headers(self) -> dict[str, str]:
        """Return the client's fields."""
        return self.asked.show()

    def resp_headers(self) -> dict[str, str]:
        """Return the fields that the client got."""
        shown = self.answered.show()
        if self.decoded:
            shown.pop("Content-Encoding", None)
        return shown


def wants_request_body(req_path: str) -> bool:
    """Whether what is asked on this path is worth keeping."""
    return req_path not in _NO_REQUEST_BODY


def wants_response_body(req_path: str, status: int) -> bool:
    """Whether an answer's body is worth keeping."""
    return 200 <= status < FAILURES and req_path not in _NO_RESPONSE_BODY


def make_capture(
    *,
    req_path: str,
    asked: HeadFields,
    req_body: Sequence[bytes],
    status: int,
    answered: HeadFields,
    content_encoding: str,
    resp_body: Sequence[bytes],
    resp_bytes: int,
    broke_off: bool = False,
) -> Capture | None:
    """Return the capture of an exchange, or None where there is none to keep.

    There is none for an empty success, and for a body that is not what its Content-Encoding says.

    Args:
        req_path: as sent upstream, without the query.
        resp_body: the pieces that are worth keeping, still encoded.
        resp_bytes: how much of a body came, worth keeping or not.
        broke_off: the answer is not whole; what can be decoded of it counts.
    """
    if not resp_bytes and 200 <= status < FAILURES:
        return None
    decodes = bool(content_encoding) and decoder_for(content_encoding) is not None
    if decodes:
        try:
            resp_body = _decoded(resp_body, content_encoding, broke_off=broke_off)
        except (BadEncoding, TooMuch):
            return None
    return Capture(
        req_path=req_path,
        asked=asked,
        req_body=req_body,
        answered=answered,
        resp_body=resp_body,
        decoded=decodes,
    )


def _decoded(body: Sequence[bytes], content_encoding: str, *, broke_off: bool) -> Sequence[bytes]:
    decoder = decoder_for(content_encoding) if body else None
    if decoder is None:
        return body
    pieces = [piece for data in body for piece in decoder.decode(data)]
    if not broke_off:
        decoder.finish()
    return pieces
