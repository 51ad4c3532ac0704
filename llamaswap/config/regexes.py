"""RE2 expressions, as `upstream.ignorePaths` takes them, on Python's `re`.

Knows both dialects: what RE2 rejects is rejected (look-around, back-references, possessive
and atomic groups, `\\Z`), and what the two read differently is rewritten.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

MOST_REPEATS = 1000
"""Of one atom, nested counts multiplied: RE2's own limit."""

LONGEST = 10_000
"""Characters."""

_REPEAT = re.compile(r"\{([0-9]+)(?:,([0-9]*))?\}")
_GROUP = re.compile(r"\(\?P?<([A-Za-z0-9_]+)>")
_FLAGS = re.compile(r"\(\?([imsU]*)(-[imsU]+)?([:)])")
_OCTAL = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}")
_HEX = re.compile(r"x(?:([0-9a-fA-F]{2})|\{([0-9a-fA-F]+)\})")
_NAMED = re.compile(r"\[:(\^?)([a-z]+):\]")
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_SETS = {"d": "0-9", "s": r"\t\n\f\r ", "w": "0-9A-Za-z_"}
_ASSERTIONS = {"A": r"\A", "z": r"\Z", "b": r"(?a:\b)", "B": r"(?a:\B)"}
_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


class WrongRegex(ValueError):
    """The text is no RE2 expression; says why."""


def compile_re2(text: str) -> re.Pattern[str]:
    """Compile for `search`; no group captures.

    Raises:
        WrongRegex: RE2 would reject it, or it needs a `\\p` class, which `re` lacks.
    """
    if len(text) > LONGEST:
        raise WrongRegex(f"longer than {LONGEST} characters")
    try:
        return re.compile(_Translator(text).translate())
    except (re.error, OverflowError, RecursionError) as error:
        raise WrongRegex(str(error)) from error


@dataclass(frozen=True, slots=True)
class _Flags:
    i: bool = False
    m: bool = False
    s: bool = False
    U: bool = False


@dataclass(slots=True)
class _Group:
    """An open parenthesis: what has been written inside, and what its last atom allows."""

    flags: _Flags  # to return to after it
    pieces: list[str] = field(default_factory=list)
    repeatable: bool = False
    repeated: bool = False
    last_repeats: int = 1  # of the last atom, nested ones multiplied
    most_repeats: int = 1


class _Translator:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._flags = _Flags()
        self._groups = [_Group(self._flags)]

    def translate(self) -> str:
        while self._at < len(self._text):
            self._step()
        if len(self._groups) > 1:
            raise WrongRegex("a parenthesis is not closed")
        return "".join(self._groups[0].pieces)

    def _step(self) -> None:
        char = self._text[self._at]
        if char == "(":
            self._open()
        elif char == ")":
            self._close()
        elif char in "*+?" or (char == "{" and _REPEAT.match(self._text, self._at)):
            self._repeat(char)
        elif char == "[":
            self._atom(self._class())
        elif char == "\\":
            self._escape()
        else:
            self._at += 1
            self._plain(char)

    def _plain(self, char: str) -> None:
        if char == "|":
            self._groups[-1].pieces.append("|")
            self._groups[-1].repeatable = False
        elif char == ".":
            self._atom("(?s:.)" if self._flags.s else r"[^\n]")
        elif char == "^":
            self._atom("(?m:^)" if self._flags.m else r"(?:\A)")
        elif char == "$":
            self._atom("(?m:$)" if self._flags.m else r"(?:\Z)")
        else:
            self._atom(re.escape(char))

    def _atom(self, piece: str, repeats: int = 1) -> None:
        group = self._groups[-1]
        group.pieces.append(f"(?i:{piece})" if self._flags.i else piece)
        group.repeatable, group.repeated, group.last_repeats = True, False, repeats
        group.most_repeats = max(group.most_repeats, repeats)

    def _open(self) -> None:
        if not self._text.startswith("(?", self._at):
            self._at += 1
            self._push(self._flags)
            return
        named = _GROUP.match(self._text, self._at)
        if named:
            self._at = named.end()
            self._push(self._flags)
            return
        match = _FLAGS.match(self._text, self._at)
        if not match or (match[3] == ")" and not match[1] and not match[2]):
            raise WrongRegex(f"{self._text[self._at : self._at + 4]!r} is not supported")
        self._at = match.end()
        flags = replace(
            self._flags, **dict.fromkeys(match[1], True), **dict.fromkeys((match[2] or "")[1:], False)
        )
        if match[3] == ":":
            self._push(self._flags)
        self._flags = flags

    def _push(self, flags: _Flags) -> None:
        self._groups.append(_Group(flags))

    def _close(self) -> None:
        self._at += 1
        if len(self._groups) == 1:
            raise WrongRegex("a parenthesis is closed that was not opened")
        group = self._groups.pop()
        self._flags = group.flags
        outer = self._groups[-1]
        outer.pieces.append(f"(?:{''.join(group.pieces)})")
        outer.repeatable, outer.repeated, outer.last_repeats = True, False, group.most_repeats
        outer.most_repeats = max(outer.most_repeats, group.most_repeats)

    def _repeat(self, char: str) -> None:
        group = self._groups[-1]
        if not group.repeatable:
            raise WrongRegex(f"nothing stands before {char!r} to repeat")
        if group.repeated:
            raise WrongRegex(f"{char!r} follows another repetition")
        written = self._count(group) if char == "{" else char
        self._at += len(written)
        lazy = self._text.startswith("?", self._at)
        self._at += lazy
        group.pieces.append(written + ("?" if lazy != self._flags.U else ""))
        group.repeated = True

    def _count(self, group: _Group) -> str:
        match = _REPEAT.match(self._text, self._at)
        assert match is not None
        if len(match[1]) > 4 or len(match[2] or "") > 4:
            raise WrongRegex(f"{match[0][:20]} repeats too often")
        least = int(match[1])
        most = int(match[2]) if match[2] else least
        if most < least:
            raise WrongRegex(f"{match[0]} counts down")
        repeats = group.last_repeats * max(most, 1)
        if repeats > MOST_REPEATS:
            raise WrongRegex(f"{match[0]} repeats more than {MOST_REPEATS} times")
        group.most_repeats = max(group.most_repeats, repeats)
        return match[0]

    def _escape(self) -> None:
        if self._text.startswith("\\Q", self._at):
            start, end = self._at + 2, self._text.find("\\E", self._at)
            end = len(self._text) if end < 0 else end
            self._at = min(len(self._text), end + 2)
            for char in self._text[start:end]:
                self._atom(re.escape(char))
            return
        letter = self._text[self._at + 1 : self._at + 2]
        if letter and letter in _ASSERTIONS:
            self._at += 2
            self._atom(f"(?:{_ASSERTIONS[letter]})")
        elif letter and letter.lower() in _SETS:
            self._at += 2
            self._atom(f"[{'^' if letter.isupper() else ''}{_SETS[letter.lower()]}]")
        else:
            self._atom(re.escape(self._character()))

    def _character(self) -> str:
        """The one character that an escape stands for."""
        start = self._at + 1
        octal, number = _OCTAL.match(self._text, start), _HEX.match(self._text, start)
        letter = self._text[start : start + 1]
        if octal or number:
            match = octal or number
            assert match is not None
            self._at = match.end()
            code = int(octal[0], 8) if octal else int(next(filter(None, match.groups()))[:8], 16)
            if code > 0x10FFFF:
                raise WrongRegex(f"\\{match[0]} is no character")
            return chr(code)
        self._at = start + 1
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if not letter or letter.isalnum() or not letter.isascii():
            raise WrongRegex(f"\\{letter} is not supported")
        return letter

    def _class(self) -> str:
        start = self._at
        self._at += 2 if self._text.startswith("[^", start) else 1
        pieces = ["[^" if self._at == start + 2 else "["]
        first = True
        while first or not self._text.startswith("]", self._at):
            if self._at >= len(self._text):
                raise WrongRegex("a character class is not closed")
            pieces.append(self._class_item())
            first = False
        self._at += 1
        return "".join([*pieces, "]"])

    def _class_item(self) -> str:
        named = _NAMED.match(self._text, self._at)
        if named:
            self._at = named.end()
            if named[2] not in _POSIX:
                raise WrongRegex(f"{named[0]} is no class")
            return _negated(_POSIX[named[2]]) if named[1] else _POSIX[named[2]]
        letter = self._text[self._at + 1 : self._at + 2]
        if self._text[self._at] == "\\" and letter and letter.lower() in _SETS:
            self._at += 2
            return _negated(_SETS[letter.lower()]) if letter.isupper() else _SETS[letter]
        low = self._class_character()
        if not self._text.startswith("-", self._at) or self._text.startswith("-]", self._at):
            return re.escape(low)
        self._at += 1
        high = self._class_character()
        if high < low:
            raise WrongRegex(f"the range {low}-{high} runs backwards")
        return f"{re.escape(low)}-{re.escape(high)}"

    def _class_character(self) -> str:
        if self._text.startswith("\\", self._at):
            return self._character()
        if self._at >= len(self._text):
            raise WrongRegex("a character class is not closed")
        self._at += 1
        return self._text[self._at - 1]


def _negated(members: str) -> str:
    """The complement of ASCII ranges, as ranges that can stand among others in a class."""
    inside = re.compile(f"[{members}]")
    outside = [chr(code) for code in range(128) if not inside.match(chr(code))]
    return "".join(map(re.escape, outside)) + "\\x80-\\U0010ffff"
