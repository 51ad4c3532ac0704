"""The groups section."""

from __future__ import annotations

from llamaswap.config.model import GroupConfig
from support.config_checks import TWO_MODELS, loaded, rejected, warnings_of


def test_models_in_no_group_make_up_the_default_one() -> None:
    assert loaded(f"{TWO_MODELS}\ngroups: {{g: {{swap: false, members: [b]}}}}").groups == (
        GroupConfig(id="(default)", members=("a",)),
        GroupConfig(id="g", swap=False, members=("b",)),
    )


def test_a_null_group_has_no_defaults() -> None:
    group = loaded(f"{TWO_MODELS}\ngroups: {{g: ~}}").groups[1]
    assert (group.swap, group.exclusive, group.persistent) == (False, False, False)


def test_a_member_belongs_to_one_group_once() -> None:
    assert rejected(f"{TWO_MODELS}\ngroups: {{g: {{members: [a]}}, h: {{members: [a]}}}}") == [
        "2:43: groups.h.members[0]: 'a' is already a member of a group, at config.yaml:2:24"
    ]


def test_an_unknown_member_is_refused_with_a_guess() -> None:
    assert rejected('models: {chat-b: {cmd: s, proxy: "http://h"}}\ngroups: {g: {members: [chat_b]}}') == [
        "2:24: groups.g.members[0]: 'chat_b' is no model; did you mean 'chat-b'?"
    ]


def test_an_alias_as_member_is_warned_about() -> None:
    assert warnings_of(f"{TWO_MODELS}\ngroups: {{g: {{members: [bee]}}}}") == [
        "2:24: groups.g.members[0]: 'bee' is an alias and has no effect here; write 'b'"
    ]


def test_a_default_group_of_ones_own_is_ignored_with_a_warning_so_that_no_model_is_lost() -> None:
    text = TWO_MODELS + '\ngroups: {"(default)": {swap: false, members: [a]}}'
    assert loaded(text).groups == (GroupConfig(id="(default)", members=("a", "b")),)
    assert len(warnings_of(text)) == 1
