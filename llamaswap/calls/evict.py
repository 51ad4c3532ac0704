"""Read the `X-LlamaSwap-Evict` header: whether a request may unload protected models."""

from __future__ import annotations

HEADER = b"x-llamaswap-evict"

_WORD = b"protected"


def overrides(value: bytes | None) -> bool:
    """Return whether the value is the one word that there is, in any letter case.

    Blanks and tabs around it are ignored.  Anything else overrides nothing: the refusal names the word.
    """
    return value is not None and value.strip(b" \t").lower() == _WORD
