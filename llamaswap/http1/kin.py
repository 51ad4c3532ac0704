"""What heads have in common that differ in nothing but the number in Content-Length.

A client sends the same head again and again, and an upstream answers with the
same one, but for the length of the body.  Whatever follows from all the rest
is worked out once and kept here.  Pure; knows neither request nor status lines.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, Self, TypeVar

from typing_extensions import override

Headers = tuple[tuple[bytes, bytes], ...]
"""Fields in the order and case they came in; values without surrounding blanks."""

Version = tuple[int, int]

T = TypeVar("T")

LENGTH = b"content-length"
MOST_DIGITS = 20  # of a length; more do not fit into 64 bits

_MOST_MEMORIES = 32
_NOTHING: Final = object()


class Kin:
    """The fields of one head, and of all that are like it.

    Args:
        headers: of the first of them, its own Content-Length among them.
    """

    __slots__ = (
        "_headers",
        "chunked",
        "firsts",
        "keep_alive",
        "memories",
        "names",
        "repeated",
        "version",
    )

    def __init__(self, version: Version, headers: Headers) -> None:
        firsts: dict[bytes, bytes] = {}
        repeated: list[bytes] = []
        names = []
        for name, value in headers:
            key = name.lower()
            names.append(key)
            if key in firsts:
                repeated.append(key)
            else:
                firsts[key] = value
        self.version = version
        self.firsts = firsts  # first values by lower-case name, less what `part_from_length` took
        self.names = names  # of all fields in their order, in lower case
        self.repeated = repeated  # lower-case names of all but the first fields of a name
        self._headers = headers
        self.memories: dict[Hashable, Any] = {}  # what was derived; for `recall`, and for who saves its call
        self.chunked = b"transfer-encoding" in firsts
        self.keep_alive = self._keeps_alive()

    def part_from_length(self) -> bytes | None:
        """Take the number in Content-Length out of what is shared, and return it; None without one.

        Called once, by the first head.
        """
        text = self.firsts.get(LENGTH)
        if text is None or not text.isdigit() or len(text) > MOST_DIGITS or LENGTH in self.repeated:
            return None
        del self.firsts[LENGTH]
        return text

    def headers(self, length: bytes | None) -> Headers:
        """All fields of the one whose Content-Length has these digits."""
        if length is None:
            return self._headers
        return tuple((pair[0], length) if pair[0].lower() == LENGTH else pair for pair in self._headers)

    def values(self, name: bytes) -> list[bytes]:
        """All values of the fields called `name` (in lower case, not Content-Length)."""
        if name in self.repeated:
            return [value for key, value in self._headers if key.lower() == name]
        return [self.firsts[name]] if name in self.firsts else []

    def recall(self, key: Hashable, compute: Callable[[T], Any], head: T) -> Any:
        """What `compute` says of `head`, asked once for each `key`."""
        memories = self.memories
        value = memories.get(key, _NOTHING)
        if value is _NOTHING:
            value = compute(head)
            if len(memories) >= _MOST_MEMORIES:
                memories.clear()
            memories[key] = value
        return value

    def _keeps_alive(self) -> bool:
        if b"connection" not in self.firsts:
            return self.version == (1, 1)
        tokens = [
            token.strip() for value in self.values(b"connection") for token in value.lower().split(b",")
        ]
        if b"close" in tokens:
            return False
        return self.version == (1, 1) or b"keep-alive" in tokens


class Head:
    """A value: fields, and what they say of the body.  Never changed; `kin` is shared with others like it."""

    __slots__ = ("_headers", "kin", "length", "length_text", "version")

    kin: Kin
    version: Version
    length: int | None  # bytes of body that Content-Length announces; None without exactly one such number
    length_text: bytes | None  # the same as it was written
    _headers: Headers | None

    @property
    def headers(self) -> Headers:
        """All fields, in the order and case they came in."""
        headers = self._headers
        if headers is None:
            headers = self._headers = self.kin.headers(self.length_text)
        return headers

    def get(self, name: bytes) -> bytes | None:
        """Value of the first field called `name` (in lower case); costs the same for any number of fields."""
        value = self.kin.firsts.get(name)
        return self.length_text if value is None and name == LENGTH else value

    def derived(self, key: Hashable, compute: Callable[[Self], T]) -> T:
        """What `compute` says of this head: asked once for all heads that differ in Content-Length only.

        Args:
            key: names the question, with everything else that the answer depends on.
            compute: must not look at Content-Length; what it returns is shared, so never changed.
                When it raises, nothing is kept.
        """
        value: T = self.kin.recall(key, compute, self)
        return value

    @override
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return self._parts() == other._parts()

    @override
    def __hash__(self) -> int:
        return hash(self._parts())

    @override
    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._parts()}"

    def _parts(self) -> tuple[object, ...]:
        """The first line's words, the version and the fields."""
        raise NotImplementedError
