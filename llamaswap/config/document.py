"""YAML text to nodes that know their place, within limits that no honest file meets.

Knows YAML's grammar (through PyYAML's event stream) and the anchors of one file; aliases
and merge keys are left standing for `expanding`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import yaml
from yaml import events

from llamaswap.config.block_scalars import written_back
from llamaswap.config.mistakes import Place
from llamaswap.config.nodes import Alias, Entry, Mapping, Node, Plain, Scalar, Sequence
from llamaswap.config.scalars import STANDARD, WrongTag, resolve, resolve_tagged, tag_of

DEEPEST = 64
"""Levels of nesting."""

MOST_NODES = 100_000
"""Values in one file."""

LARGEST = 1_048_576
"""Characters in one file."""

Locate: TypeAlias = Callable[[int, int], Place]
"""From a line and column of the text, counted from 0, to where that stands in the file."""

# Everything that PyYAML has been seen to let through besides its own errors: huge escapes
# and version numbers, broken %-escapes in tags.
_STRAY = (ValueError, ArithmeticError, LookupError, TypeError, AttributeError)
_UNUSABLE = re.compile("[\0\ud800-\udfff]")  # nothing that a command or an answer could carry
_BLOCKS = ("|", ">")
_SLASH = re.compile(r"(?<!\\)(?:\\\\)*\\/")


class NotYaml(Exception):
    """The text can't be read: what is wrong, and where."""

    def __init__(self, place: Place, what: str) -> None:
        super().__init__(f"{place}: {what}")
        self.place = place
        self.what = what


def compose(text: str, locate: Locate) -> Node | None:
    """Read the first document of a text.

    Returns:
        None when the text holds no document at all.

    Raises:
        NotYaml: at the first thing that is no YAML of this dialect.
    """
    if len(text) > LARGEST:
        raise NotYaml(locate(0, 0), f"expected at most {LARGEST} characters, got {len(text)}")
    composer = _Composer(text, locate)
    for event in _events(text, locate):
        if isinstance(event, events.DocumentEndEvent):
            return composer.root
        composer.take(event)
    return None


def _events(text: str, locate: Locate) -> Iterator[events.Event]:
    try:
        yield from yaml.parse(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = locate(mark.line, mark.column) if mark else locate(0, 0)
        raise NotYaml(place, f"YAML: {error.problem or error.context}") from error
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position)
        column = error.position - (text.rfind("\n", 0, error.position) + 1)
        raise NotYaml(locate(line, column), f"YAML: character {error.character!r} is not allowed") from error
    except (yaml.YAMLError, *_STRAY) as error:
        raise NotYaml(locate(0, 0), f"YAML: {error}") from error


@dataclass(slots=True)
class _Open:
    """A list or mapping whose end has not come yet."""

    place: Place
    is_map: bool
    flow: bool
    anchor: str | None
    tag: str | None
    children: list[Node] = field(default_factory=list)

    def close(self) -> Sequence | Mapping:
        if not self.is_map:
            return Sequence(self.place, tuple(self.children))
        return Mapping(self.place, _entries(self.children))


class _Composer:
    """Builds nodes from events, and counts."""

    def __init__(self, text: str, locate: Locate) -> None:
        self.root: Node | None = None
        self._text = text
        self._locate = locate
        self._stack: list[_Open] = []
        self._anchors: dict[str, Node | None] = {}  # None while its collection is open
        self._count = 0

    def take(self, event: events.Event) -> None:
        """Use one event; those that carry no value are skipped."""
        mark = event.start_mark
        assert mark is not None
        place = self._locate(mark.line, mark.column)
        if isinstance(event, events.DocumentStartEvent):
            if event.version and event.version != (1, 1):
                raise NotYaml(place, "YAML: only version 1.1 may be declared")
        elif isinstance(event, events.CollectionStartEvent):
            self._open(event, place)
        elif isinstance(event, events.CollectionEndEvent):
            self._close()
        elif isinstance(event, events.ScalarEvent):
            self._add(self._scalar(event, place), event.anchor)
        elif isinstance(event, events.AliasEvent):
            self._add(self._alias(event.anchor or "", place), None)

    def _open(self, event: events.CollectionStartEvent, place: Place) -> None:
        if len(self._stack) >= DEEPEST:
            raise NotYaml(place, f"nested more than {DEEPEST} levels deep")
        is_map = isinstance(event, events.MappingStartEvent)
        self._stack.append(_Open(place, is_map, bool(event.flow_style), event.anchor, event.tag))
        if event.anchor:
            self._anchors[event.anchor] = None

    def _close(self) -> None:
        done = self._stack.pop()
        self._add(done.close(), done.anchor)

    def _add(self, node: Node, anchor: str | None) -> None:
        self._count += 1
        if self._count > MOST_NODES:
            raise NotYaml(node.place, f"more than {MOST_NODES} values")
        if anchor:
            self._anchors[anchor] = node
        if self._stack:
            self._stack[-1].children.append(node)
        else:
            self.root = node

    def _alias(self, name: str, place: Place) -> Alias:
        if name not in self._anchors:
            raise NotYaml(place, f"YAML: no anchor &{name} before this")
        target = self._anchors[name]
        if target is None:
            raise NotYaml(place, f"YAML: &{name} contains itself")
        return Alias(place, name, target)

    def _scalar(self, event: events.ScalarEvent, place: Place) -> Scalar:
        text = event.value
        _check_usable(text, place)
        if event.style in _BLOCKS:
            text = written_back(text, folded=event.style == ">")
        if event.style == '"' and self._has_escaped_slash(event):
            raise NotYaml(place, "YAML: unknown escape \\/ in double quotes")
        if event.tag and event.tag != "!":
            return self._tagged(text, event.tag, place)
        if event.tag or event.style:
            return Scalar(place, text, text, "str")
        if not text and self._is_flow_value():
            return Scalar(place, "", "", "str")
        value = resolve(text)
        return Scalar(place, value, text, tag_of(value))

    def _tagged(self, text: str, tag: str, place: Place) -> Scalar:
        try:
            value = resolve_tagged(text, tag)
        except WrongTag as error:
            raise NotYaml(place, f"YAML: {error}") from error
        _check_usable(value, place)
        return Scalar(place, value, text, tag.removeprefix(STANDARD))

    def _is_flow_value(self) -> bool:
        """Whether the next scalar is the value of a key in `{...}`: there, nothing means ''."""
        inner = self._stack[-1] if self._stack else None
        return inner is not None and inner.is_map and inner.flow and len(inner.children) % 2 == 1

    def _has_escaped_slash(self, event: events.ScalarEvent) -> bool:
        assert event.start_mark is not None
        assert event.end_mark is not None
        written = self._text[event.start_mark.index : event.end_mark.index]
        return _SLASH.search(written) is not None


def _check_usable(value: Plain, place: Place) -> None:
    unusable = _UNUSABLE.search(value) if isinstance(value, str) else None
    if unusable:
        raise NotYaml(place, f"YAML: character {unusable[0]!r} is not allowed")


def _entries(children: list[Node]) -> tuple[Entry, ...]:
    """Pair up keys and values; a key must be a scalar and may come once."""
    entries: list[Entry] = []
    seen: set[str] = set()
    for key, value in zip(children[::2], children[1::2], strict=True):
        name = key.target if isinstance(key, Alias) else key
        if not isinstance(name, Scalar):
            raise NotYaml(key.place, "YAML: a list or mapping can't be a key here")
        if name.text in seen:
            raise NotYaml(key.place, f"YAML: key {name.text!r} is already used in this mapping")
        seen.add(name.text)
        entries.append((name, value))
    return tuple(entries)
