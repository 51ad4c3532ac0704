"""RE2 expressions, as `upstream.ignorePaths` takes them: what llama-swap's Go accepts, and as fast.

RE2 itself does the work: it takes time linear in the text, whatever the expression.
"""

from __future__ import annotations

import re
from typing import Protocol

LONGEST = 10_000
"""Characters."""


# The C++ library knows it, Go's does not.
_ANY_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")


class WrongRegex(ValueError):
    """The text is no RE2 expression; says why."""


class Expression(Protocol):
    """A compiled expression."""

    def search(self, text: str) -> object | None:
        """Return a match anywhere in the text, or None."""


def compile_re2(text: str) -> Expression:
    """Compile for `search`.

    Raises:
        WrongRegex: RE2 rejects it: look-around, back-references, too much repetition, bad syntax.
    """
    if len(text) > LONGEST:
        raise WrongRegex(f"longer than {LONGEST} characters")
    if _ANY_BYTE.search(text) is not None:
        raise WrongRegex(r"invalid escape sequence: \C")
    # The library weighs 2.5 MiB, and a daemon needs it from the first request for `/upstream/` on.
    import re2

    options = re2.Options()
    options.log_errors = False  # it would write to our standard error
    try:
        expression: Expression = re2.compile(text, options)
    except re2.error as error:
        raise WrongRegex(_said(error)) from error
    return expression


def _said(error: Exception) -> str:
    """Return RE2's words, which come as bytes."""
    words = error.args[0] if error.args else ""
    return words.decode("utf-8", "replace") if isinstance(words, bytes) else str(words)
