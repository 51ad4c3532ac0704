"""A command text to its words, the way llama-swap splits it; no shell is involved.

Knows nothing of where the text came from.  Python's `shlex` differs: it raises on an open
quote, splits on CR and keeps a backslash before a line end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

_SEPARATORS = " \t\n"
_ESCAPED_IN_DOUBLE = '$`"\\'


def split_command(text: str) -> tuple[str, ...]:
    """Split a `cmd` or `cmdStop`.

    Lines that start with `#` are dropped, a `\\` at a line's end joins it with the next.
    Quotes and backslashes work as in a POSIX shell, an open quote runs to the end, and
    everything else (`$VAR`, `~`, `|`, `;`) is literal.

    Returns:
        The words; () when there are none.
    """
    return _Splitter("\n".join(_lines(text))).split()


def _lines(text: str) -> list[str]:
    lines = []
    for line in text.split("\n"):
        trimmed = line.strip()
        if trimmed.startswith("#"):
            continue
        lines.append(f"{trimmed[:-1]} " if trimmed.endswith("\\") else line)
    return lines


@dataclass(slots=True)
class _Splitter:
    text: str
    _at: int = 0
    _word: list[str] | None = None  # None between words; [] is an empty word
    _words: list[str] = field(default_factory=list)

    def split(self) -> tuple[str, ...]:
        while self._at < len(self.text):
            char = self._take()
            if char in _SEPARATORS:
                self._end_word()
            elif char == "'":
                self._until_quote()
            elif char == '"':
                self._double()
            elif char == "\\":
                self._escape()
            else:
                self._add(char)
        self._end_word()
        return tuple(self._words)

    def _take(self) -> str:
        self._at += 1
        return self.text[self._at - 1]

    def _add(self, piece: str) -> None:
        if self._word is None:
            self._word = []
        self._word.append(piece)

    def _end_word(self) -> None:
        if self._word is not None:
            self._words.append("".join(self._word))
            self._word = None

    def _until_quote(self) -> None:
        end = self.text.find("'", self._at)
        end = len(self.text) if end < 0 else end
        self._add(self.text[self._at : end])
        self._at = end + 1

    def _double(self) -> None:
        self._add("")
        while self._at < len(self.text):
            char = self._take()
            if char == '"':
                return
            if char == "\\" and self._at < len(self.text):
                char = self._in_double(self._take())
            self._add(char)

    def _in_double(self, escaped: str) -> str:
        if escaped == "\n":
            return ""
        return escaped if escaped in _ESCAPED_IN_DOUBLE else f"\\{escaped}"

    def _escape(self) -> None:
        if self._at < len(self.text):
            char = self._take()
            if char != "\n":
                self._add(char)
