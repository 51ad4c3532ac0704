"""Which macros are applied where: the global ones everywhere, a model's own inside it.

Knows the shape of a whole configuration (`macros`, `models`, `startPort`); how a macro is
replaced is `macros`' subject, what is special about a model `model_macros`'.
"""

from __future__ import annotations

from collections.abc import Mapping as Numbers
from collections.abc import Set as AbstractSet
from dataclasses import replace

from llamaswap.config.macros import MOST_CHARACTERS, Substitution, declarations, leftovers
from llamaswap.config.mistakes import Report
from llamaswap.config.model_macros import ModelExpansion
from llamaswap.config.nodes import Entry, Mapping, Node, Timestamp, spell
from llamaswap.config.ports import NO_PORTS, Ports
from llamaswap.config.reading import Section
from llamaswap.config.settings import read_start_port


def apply_macros(
    root: Node, own_keys: AbstractSet[str], report: Report, in_use: Numbers[str, int] = NO_PORTS
) -> tuple[Mapping, Numbers[str, int]]:
    """The tree with every macro replaced, and the ports that models were given.

    Args:
        root: the expanded tree of the whole configuration.
        own_keys: top-level keys in which no placeholder may be left; in others it may.
        report: where mistakes go.
        in_use: the ports that models have, by id.

    Raises:
        TooMuchText: macros multiply each other beyond the limit.
    """
    assert isinstance(root, Mapping)
    shared = declarations(root.get("macros"), "macros", report)
    budget = [MOST_CHARACTERS]
    substitution = Substitution(shared, budget)
    entries = [(key, _global(key.text, value, substitution, own_keys, report)) for key, value in root.entries]
    everything = replace(root, entries=tuple(entries))
    # Whether the port itself makes sense is reported when settings are read.
    ports = Ports(read_start_port(Section(everything, root.place, "", Report())), in_use)
    models = ModelExpansion(shared, ports, budget, report)
    tree = replace(
        everything,
        entries=tuple(
            (key, _models(value, models, report) if key.text == "models" else value) for key, value in entries
        ),
    )
    return tree, ports.given


def _global(
    key: str, value: Node, substitution: Substitution, own_keys: AbstractSet[str], report: Report
) -> Node:
    if key in {"macros", "models"}:
        return value
    value = substitution.tree(value)
    if key in own_keys:
        leftovers(value, key, report)
    return value


def _models(node: Node, models: ModelExpansion, report: Report) -> Node:
    """Every model expanded, in byte order of the ids."""
    if not isinstance(node, Mapping):
        return node
    ordered = sorted(node.entries, key=lambda entry: spell(entry[0].value))
    return replace(node, entries=tuple(_model(entry, models, report) for entry in ordered))


def _model(entry: Entry, models: ModelExpansion, report: Report) -> Entry:
    key, value = entry
    if not isinstance(key.value, str) or isinstance(key.value, Timestamp):
        # llama-swap would silently lose every model of the file.
        report.wrong(key.place, "models", f"a model id must be text; put quotes around {key.text or 'it'}")
    elif isinstance(value, Mapping):
        return key, models.expand(key.value, value, key.place)
    return entry
