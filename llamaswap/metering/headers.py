"""Headers as a person may see them: one value each, in the usual capitals, no secrets.

Pure.  The shape is the one that llama-swap shows in captures and in its list of running requests.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

Headers = Iterable[tuple[bytes, bytes]]

REDACTED: Final = "[REDACTED]"

_SECRET: Final = frozenset({b"cookie", b"set-cookie"})
# What other services call theirs: `x-goog-api-key`, `apikey`, `ocp-apim-subscription-key`, `x-auth-key`,
# `x-amz-security-token`, `cf-access-client-secret`, `x-forwarded-authorization`.
_SECRET_ENDS: Final = (
    *(b"authorization", b"api-key", b"apikey", b"subscription-key", b"auth-key", b"access-key"),
    *(b"functions-key", b"token", b"secret", b"password"),
)
# Facts of one hop, which llama-swap does not count among the headers.
_NOT_SHOWN: Final = frozenset({b"host", b"transfer-encoding"})


def shown_headers(headers: Headers, *, without: frozenset[bytes] = frozenset()) -> dict[str, str]:
    """Return the first value of each field; credentials are replaced.

    Args:
        without: further names to leave out, in lower case.
    """
    shown: dict[str, str] = {}
    for name, value in headers:
        key = name.lower()
        if key in _NOT_SHOWN or key in without:
            continue
        shown.setdefault(usual_case(key), REDACTED if _is_secret(key) else value.decode("utf-8", "replace"))
    return shown


def _is_secret(key: bytes) -> bool:
    return key in _SECRET or key.endswith(_SECRET_ENDS)


def usual_case(name: bytes) -> str:
    """Write a field name as `Xx-Yy`."""
    return "-".join(word.capitalize() for word in name.decode("latin-1").split("-"))
