"""`priorities`: what a priority is where the request does not say, and how far each caller may go.

A section of our own, which llama-swap ignores.  Knows what it says, not how a request finds
its caller.  Keys are secrets: a complaint never repeats one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from llamaswap.config.mistakes import Report, below
from llamaswap.config.model import CallerConfig, PrioritiesConfig, SchedulerConfig, SchedulerName
from llamaswap.config.names import Names
from llamaswap.config.nodes import Mapping as Block
from llamaswap.config.nodes import Node, Scalar, Sequence, describe
from llamaswap.config.reading import Named, Section

ANCHORS: Mapping[str, int] = MappingProxyType({"interactive": 100, "normal": 0, "batch": -100})
"""The bands by name, each with the priority that its name stands for."""

BAND_SPACING = 100  # points between two anchors
LARGEST_OFFSET = 98
LONGEST_NAME = 64  # characters
PRIORITIES = range(-(2**63), 2**63)
"""What a priority may be: a whole number of 64 bits."""


@dataclass(slots=True)
class _Seen:
    """What callers have been given so far: both belong to one of them only."""

    api_keys: Collection[str]
    names: dict[str, int] = field(default_factory=dict)  # to the caller's place in the list
    owners: dict[str, int] = field(default_factory=dict)  # of keys, to the same


def read_priorities(
    section: Section, names: Names, api_keys: tuple[str, ...], scheduler: SchedulerConfig
) -> PrioritiesConfig:
    """Read the section; without it, nobody is anybody.

    Args:
        section: `priorities`.
        names: what models may be called.
        api_keys: the keys that open the server at all.
        scheduler: its bonus and an offset together must not lead out of a band.
    """
    seen = _Seen(frozenset(api_keys))
    bonus = scheduler.serial.swap_affinity_bonus if scheduler.use is SchedulerName.SERIAL else 0
    callers = tuple(_caller(one, number, seen, bonus) for number, one in _sections(section, "callers"))
    priorities = PrioritiesConfig(callers=callers, models=_models(section, names))
    section.close()
    return priorities


def resolved(entries: Iterable[Named], names: Names, report: Report) -> Iterator[tuple[str, Named]]:
    """Entries whose keys are models, each with its model's id; nulls are left out, no model comes twice."""
    known: dict[str, str] = {}
    for entry in entries:
        model = names.local(entry.name)
        if model is None:
            guess = report.guess(entry.name, (*names.models, *names.aliases))
            report.wrong(entry.place, entry.path, f"{entry.name!r} is no model or alias here{guess}")
        elif model in known:
            report.wrong(entry.place, entry.path, f"is the model of {known[model]!r}, which stands here, too")
        else:
            known[model] = entry.name
            if not _is_null(entry.node):
                yield model, entry


def _sections(section: Section, key: str) -> Iterator[tuple[int, Section]]:
    """A list of mappings, numbered; whatever else stands there is not repeated, for it may be a key."""
    node = section.node(key)
    if node is not None and not isinstance(node, Sequence):
        kind = "a mapping" if isinstance(node, Block) else "a single value"
        section.wrong(key, f"expected a list, got {kind}")
        return
    for number, item in enumerate(node.items if node is not None else ()):
        path = below(below(section.path, key), number)
        if isinstance(item, Block):
            yield number, Section(item, item.place, path, section.report)
        else:
            section.report.wrong(item.place, path, "expected a mapping with a name and keys")


def _caller(section: Section, number: int, seen: _Seen, bonus: int) -> CallerConfig:
    caller = CallerConfig(
        name=_name(section, number, seen),
        keys=_keys(section, number, seen),
        default_priority=_priority_at(section, "defaultPriority"),
        max_priority=_priority_at(section, "maxPriority"),
        offset=_offset(section, bonus),
    )
    section.close()
    default, most = caller.default_priority, caller.max_priority
    if default is not None and most is not None and default > most:
        section.warn("defaultPriority", f"is more than maxPriority, so {most} counts")
    return caller


def _name(section: Section, number: int, seen: _Seen) -> str:
    name = section.text("name")
    trouble = None
    if not name.strip():
        trouble = "expected a name"
    elif name in seen.api_keys:
        trouble = "is an API key, and names are shown"
    elif len(name) > LONGEST_NAME or not name.isprintable():
        trouble = f"expected one line of at most {LONGEST_NAME} printable characters"
    elif name in seen.names:
        trouble = f"is the name of callers[{seen.names[name]}], too"
    if trouble:
        section.wrong("name", trouble)
    seen.names.setdefault(name, number)
    return name


def _keys(section: Section, number: int, seen: _Seen) -> tuple[str, ...]:
    words = section.words("keys")
    for word in words:
        if word.text not in seen.api_keys:
            section.report.wrong(word.place, word.path, "this key is not in apiKeys")
        elif seen.owners.setdefault(word.text, number) != number:
            owner = f"callers[{seen.owners[word.text]}]"
            section.report.wrong(word.place, word.path, f"this key is one of {owner}, too")
    if not words:
        section.warn("keys", "without a key, nobody is this caller")
    return tuple(dict.fromkeys(word.text for word in words))


def _offset(section: Section, bonus: int) -> int:
    node = section.node("offset")
    if node is None:
        return 0
    value = node.value if isinstance(node, Scalar) else None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST_OFFSET:
        what = f"expected points, a whole number from 0 to {LARGEST_OFFSET}, got {describe(node)}"
        section.wrong("offset", what)
        return 0
    if value + bonus >= BAND_SPACING:
        what = (
            f"expected at most {BAND_SPACING - 1 - bonus}: with a swapAffinityBonus of {bonus}, "
            f"{value} points lead from one band into the next"
        )
        section.wrong("offset", what)
    return value


def _models(section: Section, names: Names) -> MappingProxyType[str, int]:
    found = {
        model: _priority(entry.node, entry.path, section.report)
        for model, entry in resolved(section.named("models"), names, section.report)
    }
    return MappingProxyType({model: priority for model, priority in found.items() if priority is not None})


def _priority_at(section: Section, key: str) -> int | None:
    node = section.node(key)
    return None if node is None else _priority(node, below(section.path, key), section.report)


def _priority(node: Node, path: str, report: Report) -> int | None:
    """A number or a band's name; None for null, and after a complaint."""
    if _is_null(node):
        return None
    value = node.value if isinstance(node, Scalar) else ""
    if isinstance(value, str) and value in ANCHORS:
        return ANCHORS[value]
    if isinstance(value, int) and not isinstance(value, bool) and value in PRIORITIES:
        return value
    guess = report.guess(value, ANCHORS) if isinstance(value, str) and value else ""
    what = f"expected a whole number or one of {', '.join(ANCHORS)}, got {describe(node)}{guess}"
    report.wrong(node.place, path, what)
    return None


def _is_null(node: Node) -> bool:
    return isinstance(node, Scalar) and node.value is None
