"""Who may come in: the API keys of the configuration.

One candidate is taken from a request: the password of Basic credentials, else
a Bearer token, else `x-api-key`; the first that is there decides alone.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Iterable, Sequence

from typing_extensions import override

from llamaswap.config.model import CallerConfig
from llamaswap.errors import Header, Refusal
from llamaswap.http1.heads import RequestHead


class Unauthorized(Refusal):
    """The API key is missing or wrong."""

    status = 401

    def __init__(self) -> None:
        super().__init__("unauthorized: invalid or missing API key")

    @override
    def headers(self) -> tuple[Header, ...]:
        """Let browsers ask for the key."""
        return ((b"WWW-Authenticate", b'Basic realm="llama-swap"'),)


class Keyring:
    """The keys; without any, everybody may come in.

    Args:
        callers: who has which of the keys; the others are nobody's in particular.
    """

    def __init__(self, keys: Sequence[str], callers: Iterable[CallerConfig] = ()) -> None:
        self._keys = [key.encode() for key in keys]
        self._owners = {key.encode(): caller for caller in callers for key in caller.keys}

    def check(self, head: RequestHead) -> None:
        """Raise Unauthorized unless the request carries one of the keys.

        Every key is compared, in constant time: how long the answer takes
        tells nothing about which was nearly right.
        """
        if self._keys and self._used(head) is None:
            raise Unauthorized

    def caller_of(self, head: RequestHead) -> CallerConfig | None:
        """Return whose key a request carries; None for a key of nobody in particular, or none."""
        used = self._used(head) if self._owners else None
        return None if used is None else self._owners.get(used)

    def limited(self, head: RequestHead) -> CallerConfig | None:
        """Return the caller whose key a request carries if its priority is limited.

        Such a caller could clear the way for its own requests: it does not get to change others'.
        """
        caller = self.caller_of(head)
        return None if caller is None or caller.max_priority is None else caller

    def _used(self, head: RequestHead) -> bytes | None:
        """Return the key that a request carries; every key is compared."""
        candidate = candidate_of(head)
        fits = [key for key in self._keys if hmac.compare_digest(candidate, key)]
        return fits[0] if fits else None


def candidate_of(head: RequestHead) -> bytes:
    """Return the key that a request offers, b'' for none."""
    scheme, _, value = (head.get(b"authorization") or b"").partition(b" ")
    if scheme.lower() == b"basic":
        password = _password(value)
        if password:
            return password
    if scheme.lower() == b"bearer" and value:
        return value
    return head.get(b"x-api-key") or b""


def _password(credentials: bytes) -> bytes:
    try:
        decoded = base64.b64decode(credentials.strip(), validate=True)
    except binascii.Error:
        return b""
    return decoded.partition(b":")[2]
