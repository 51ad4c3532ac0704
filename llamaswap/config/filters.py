"""`filters`: what is removed from and set in a request body.  `model` is never touched."""

from __future__ import annotations

from collections.abc import Mapping as Names
from types import MappingProxyType
from typing import Any

from llamaswap.config.model import Filters
from llamaswap.config.nodes import Mapping, Scalar, describe
from llamaswap.config.reading import Section, Word, plain

PROTECTED = "model"


def read_filters(section: Section, *, legacy: bool) -> tuple[Filters, tuple[Word, ...]]:
    """Read a `filters` block.

    Args:
        section: the block.
        legacy: whether `strip_params` counts where `stripParams` is empty.

    Returns:
        The filters, and the keys of `setParamsByID` with their places.
    """
    listed = section.text("stripParams")
    if legacy and section.has("strip_params"):
        listed = listed or section.text("strip_params")
    chosen = _unprotected(section.free("setParams"))
    by_id, keys = _by_id(section)
    section.close()
    return Filters(strip=_names(listed), set=chosen, set_by_id=by_id), keys


def _names(listed: str) -> tuple[str, ...]:
    names = {name.strip() for name in listed.split(",")}
    return tuple(sorted(names - {"", PROTECTED}))


def _unprotected(chosen: Names[str, Any]) -> Names[str, Any]:
    return MappingProxyType({key: value for key, value in chosen.items() if key != PROTECTED})


def _by_id(section: Section) -> tuple[Names[str, Names[str, Any]], tuple[Word, ...]]:
    chosen: dict[str, Names[str, Any]] = {}
    keys: list[Word] = []
    for entry in section.named("setParamsByID"):
        keys.append(Word(entry.name, entry.place, entry.path))
        if isinstance(entry.node, Mapping):
            chosen[entry.name] = _unprotected(plain(entry.node))
        elif isinstance(entry.node, Scalar) and entry.node.value is None:
            chosen[entry.name] = MappingProxyType({})
        else:
            section.report.wrong(
                entry.node.place, entry.path, f"expected a mapping, got {describe(entry.node)}"
            )
    return MappingProxyType(chosen), tuple(keys)
