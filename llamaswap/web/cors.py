"""Cross-origin preflights: any OPTIONS, on any path, is allowed and never goes further."""

from __future__ import annotations

import re

from llamaswap.http1.exchange import Exchange

_TOKEN = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_USUAL = b"Content-Type, Authorization, Accept, X-Requested-With"


def preflight(exchange: Exchange) -> None:
    """Answer an OPTIONS request."""
    asked = exchange.head.get(b"access-control-request-headers")
    exchange.respond(
        204,
        headers=(
            (b"Access-Control-Allow-Origin", b"*"),
            (b"Access-Control-Allow-Methods", b"GET, POST, PUT, PATCH, DELETE, OPTIONS"),
            (b"Access-Control-Allow-Headers", _USUAL if asked is None else clean_names(asked)),
            (b"Access-Control-Max-Age", b"86400"),
        ),
    )


def clean_names(asked: bytes) -> bytes:
    """Keep the header names that are names."""
    names = [name.strip() for name in asked.split(b",")]
    return b", ".join(name for name in names if _TOKEN.fullmatch(name))
