"""What the words and tokens of a trace mean on this box, read from YAML.

    model: {from: Model, values: {GPT-4: qwen, ChatGPT: gemma}}
    priority: {from: Log Type, values: {API*: batch, Conversation*: {interactive: 0.3, normal: 0.7}}}
    models:
      qwen: {load: 12, prefill: 900, decode: 40}

Knows what may stand there, and says where something else does; applying it is `placing`'s business.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from llamaswap.config import nodes
from llamaswap.config.document import NotYaml, compose
from llamaswap.config.expanding import expand
from llamaswap.config.mistakes import Place, Report
from llamaswap.config.reading import Section, text_of
from llamaswap.simulation.arrivals_csv import priority_of
from llamaswap.simulation.records import BadLine, Unusable
from llamaswap.simulation.rules import Choice, Rule, everyone

OTHERS = "*"
"""The entry of `models` that stands for those without one."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one model takes here; None = not said."""

    load: float | None = None  # seconds
    prefill: float | None = None  # tokens of a prompt a second
    decode: float | None = None  # tokens of an answer a second
    parallel: int | None = None  # requests that its server works on at once


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceMapping:
    """A whole mapping; without rules every record means what it says."""

    model: Rule[str] | None = None
    priority: Rule[int] | None = None
    costs: Mapping[str, Cost] = field(default_factory=dict)  # by model, and for OTHERS


def read_mapping(words: str) -> TraceMapping:
    """Read a mapping.

    Args:
        words: the path of a file, or the mapping itself if it begins with `{`.

    Raises:
        Unusable: it can't be read, or has mistakes: all of them, a line each.
    """
    if words.lstrip().startswith("{"):
        return mapping_of(words, "--mapping")
    try:
        return mapping_of(Path(words).read_text("utf-8"), words)
    except (OSError, UnicodeDecodeError) as error:
        raise Unusable(f"{words}: {error}") from error


def mapping_of(text: str, file: str) -> TraceMapping:
    """Read a mapping's text; raises as `read_mapping` does."""
    report = Report([file])
    try:
        root = compose(text, lambda line, column: Place(file, line + 1, column + 1))
        tree = nodes.Mapping(Place(file)) if root is None else expand(root)
    except NotYaml as error:
        raise Unusable(str(error)) from error
    section = Section(tree, tree.place, "", report)
    read = TraceMapping(
        model=_rule(section, "model", _model),
        priority=_rule(section, "priority", _priority),
        costs={
            entry.name: _cost(Section(entry.node, entry.place, entry.path, report))
            for entry in section.named("models")
        },
    )
    section.close()
    # An unknown key is a mistake here: nothing would be as it was meant.
    mistakes = (*map(str, report.mistakes), *report.warnings())
    if mistakes:
        raise Unusable("\n".join(mistakes))
    return read


def _rule(root: Section, key: str, value_of: Callable[[str], T]) -> Rule[T] | None:
    node = root.node(key)
    if node is None:
        return None
    if not isinstance(node, nodes.Mapping) or not (node.get("values") or node.get("from")):
        choice = _choice(node, key, root.report, value_of)
        return None if choice is None else everyone(choice)
    section = root.section(key)
    values = {
        entry.name: choice
        for entry in section.named("values")
        if (choice := _choice(entry.node, entry.path, root.report, value_of)) is not None
    }
    default = section.node("default")
    rule = Rule(
        source=section.text("from") or None,
        values=values,
        default=None if default is None else _choice(default, f"{key}.default", root.report, value_of),
    )
    section.close()
    return rule


def _choice(node: nodes.Node, path: str, report: Report, value_of: Callable[[str], T]) -> Choice[T] | None:
    """One value, or a mapping of values to shares."""
    if not isinstance(node, nodes.Mapping):
        text = text_of(node, path, report)
        value = None if text is None else _value(text, node.place, path, report, value_of)
        return None if value is None else Choice((value,))
    found: dict[T, float] = {}
    for key, share in node.entries:
        name = nodes.spell(key.value)
        value, size = _value(name, key.place, path, report, value_of), _positive(share)
        if size is None:
            report.wrong(
                share.place, f"{path}.{name}", f"expected a share above 0, got {nodes.describe(share)}"
            )
        elif value is not None:
            found[value] = size
    return Choice(tuple(found), tuple(found.values())) if found else None


def _value(text: str, place: Place, path: str, report: Report, value_of: Callable[[str], T]) -> T | None:
    try:
        return value_of(text)
    except BadLine as why:
        report.wrong(place, path, str(why))
        return None


def _cost(section: Section) -> Cost:
    amounts: dict[str, float | None] = {}
    for key, unit in (("load", "seconds"), ("prefill", "tokens a second"), ("decode", "tokens a second")):
        node = section.node(key)
        amounts[key] = None if node is None else _positive(node)
        if node is not None and amounts[key] is None:
            section.wrong(key, f"expected {unit}, a number above 0, got {nodes.describe(node)}")
    parallel = (
        section.whole("parallel", 0, unit="a whole number above 0") if section.has("parallel") else None
    )
    if parallel is not None and parallel < 1:
        section.wrong("parallel", f"expected a whole number above 0, got {parallel}")
    section.close()
    return Cost(**amounts, parallel=parallel)


def _positive(node: nodes.Node) -> float | None:
    value = node.value if isinstance(node, nodes.Scalar) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value < math.inf else None


def _model(text: str) -> str:
    if not text:
        raise BadLine("expected a model, got nothing")
    return text


def _priority(text: str) -> int:
    return priority_of(text)
