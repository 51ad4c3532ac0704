"""The eviction rules of groups, as a truth table and as what people trip over."""

from __future__ import annotations

import itertools

import pytest

from llamaswap.config.model import GroupConfig
from llamaswap.scheduling.groups import GroupPlanner

FLAGS = tuple(itertools.product((False, True), repeat=3))


def group(name: str, members: str, flags: tuple[bool, bool, bool] = (True, True, False)) -> GroupConfig:
    swap, exclusive, persistent = flags
    return GroupConfig(id=name, swap=swap, exclusive=exclusive, persistent=persistent, members=tuple(members))


def evicted(target: str, running: str, *groups: GroupConfig) -> str:
    return "".join(sorted(GroupPlanner(groups).make_room(target, frozenset(running))))


@pytest.mark.parametrize("g", FLAGS)
@pytest.mark.parametrize("h", FLAGS)
def test_case_058_every_combination_of_two_groups(
    g: tuple[bool, bool, bool], h: tuple[bool, bool, bool]
) -> None:
    (swap, exclusive, _), (_, _, persistent) = g, h
    siblings = "b" if swap else ""
    strangers = "xy" if exclusive and not persistent else ""

    assert evicted("a", "abxy", group("g", "ab", g), group("h", "xy", h)) == siblings + strangers


@pytest.mark.parametrize("flags", FLAGS)
def test_a_model_never_evicts_itself(flags: tuple[bool, bool, bool]) -> None:
    assert evicted("a", "a", group("g", "ab", flags)) == ""


def test_nobody_is_evicted_who_does_not_run() -> None:
    assert evicted("a", "", group("g", "ab")) == ""
    assert evicted("a", "b", group("g", "abc")) == "b"


def test_persistent_protects_against_other_groups_but_not_against_siblings() -> None:
    keeper = group("keeper", "pq", (True, False, True))

    assert evicted("a", "ap", group("g", "a"), keeper) == ""
    assert evicted("q", "p", keeper) == "p"


def test_the_next_request_for_an_exclusive_model_evicts_who_settled_beside_it() -> None:
    groups = group("x", "a"), group("y", "b", (True, False, False))

    assert evicted("b", "a", *groups) == ""
    assert evicted("a", "ab", *groups) == "b"


def test_a_group_that_swaps_but_is_not_exclusive_leaves_others_alone() -> None:
    assert (
        evicted("a", "bxy", group("g", "ab", (True, False, False)), group("h", "xy", (False, False, False)))
        == "b"
    )
