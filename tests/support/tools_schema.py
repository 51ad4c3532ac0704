"""The schema as a checker, files as it sees them, and which keys it knows where."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from llamaswap.config.document import NotYaml, compose
from llamaswap.config.expanding import expand
from llamaswap.config.mistakes import Place
from llamaswap.config.reading import plain
from llamaswap.tools.schema import schema

ETC = Path(__file__).parents[2] / "etc"

CHECKER = Draft202012Validator(schema())

Keys = dict[str, frozenset[str]]
"""Path of a section, with `*` for a name and `[]` for a place in a list, to its keys."""


def as_written(text: str) -> Any:
    """A file as an editor sees it: aliases resolved, macros in place."""
    root = compose(text.removeprefix("\ufeff"), lambda line, column: Place("f", line + 1, column + 1))
    return None if root is None else plain(expand(root))


def complaints(text: str) -> list[str]:
    """What the schema has against a file: the paths of the offending values.

    Nothing where there is no mapping to look at, or none yet: `[${env.A}]` is no YAML.
    """
    try:
        value = as_written(text)
    except NotYaml:
        return []
    errors = CHECKER.iter_errors(value) if isinstance(value, dict) else ()
    return [".".join(map(str, error.absolute_path)) for error in errors]


def keys_of_schema() -> Keys:
    """Every section with keys of its own."""
    return dict(_sections(schema(), ""))


def pattern_of(path: str) -> str:
    """A section's path in a file without dots in names, as `Keys` writes it."""
    node, pattern = schema(), []
    for part in path.split(".") if path else []:
        name, listed, _ = part.partition("[")
        known = name in node.get("properties", {})
        node = node["properties"][name] if known else node["additionalProperties"]
        node = node["items"] if listed else node
        pattern.append((name if known else "*") + ("[]" if listed else ""))
    return ".".join(pattern)


def _sections(node: Any, path: str) -> Iterator[tuple[str, frozenset[str]]]:
    keys = node.get("properties", {})
    if keys:
        yield path, frozenset(keys)
    for key, value in keys.items():
        yield from _sections(value, f"{path}.{key}".lstrip("."))
    if isinstance(node.get("additionalProperties"), dict):
        yield from _sections(node["additionalProperties"], f"{path}.*".lstrip("."))
    if "items" in node:
        yield from _sections(node["items"], f"{path}[]")
