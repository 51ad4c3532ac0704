"""`groups`: models that may or may not be loaded together."""

from __future__ import annotations

from collections.abc import Iterable

from llamaswap.config.mistakes import Report
from llamaswap.config.model import GroupConfig
from llamaswap.config.names import Names
from llamaswap.config.reading import Named, Section, Word, entry_section

DEFAULT_GROUP = "(default)"
"""Holds every model that is in no other group."""


def read_groups(owner: Section, names: Names, report: Report) -> tuple[GroupConfig, ...]:
    """Read all groups, the default one included, sorted by id.

    Args:
        owner: the section that has the `groups` key.
        names: what members may be called.
        report: where mistakes go.
    """
    groups: list[GroupConfig] = []
    owners: dict[str, Word] = {}
    for entry in owner.named("groups"):
        group = _group(entry, names, owners, report)
        if group.id == DEFAULT_GROUP:
            report.warn(
                entry.place, entry.path, "is made by itself, from all models in no group; this one is ignored"
            )
        else:
            groups.append(group)
    alone = sorted(names.models - {member for group in groups for member in group.members})
    groups.append(GroupConfig(id=DEFAULT_GROUP, members=tuple(alone)))
    return tuple(sorted(groups, key=lambda group: group.id))


def share_a_group(groups: Iterable[GroupConfig], models: frozenset[str]) -> bool:
    """Whether one group holds all these models without swapping them."""
    return any(not group.swap and models <= set(group.members) for group in groups)


def _group(entry: Named, names: Names, owners: dict[str, Word], report: Report) -> GroupConfig:
    section = entry_section(entry, report)
    members = section.words("members")
    group = GroupConfig(
        id=entry.name,
        swap=section.flag("swap", default=True),
        exclusive=section.flag("exclusive", default=True),
        persistent=section.flag("persistent"),
        members=tuple(sorted(word.text for word in members)),
    )
    section.close()
    for word in members if entry.name != DEFAULT_GROUP else ():
        _check_member(word, names, report)
        if word.text in owners:
            what = f"{word.text!r} is already a member of a group, at {owners[word.text].place}"
            report.wrong(word.place, word.path, what)
        owners[word.text] = word
    return group


def _check_member(word: Word, names: Names, report: Report) -> None:
    model = names.local(word.text)
    if model is None:
        report.wrong(
            word.place, word.path, f"{word.text!r} is no model{report.guess(word.text, names.models)}"
        )
    elif word.text not in names.models:
        what = f"{word.text!r} is an alias and has no effect here; write {model!r}"
        report.warn(word.place, word.path, what)
