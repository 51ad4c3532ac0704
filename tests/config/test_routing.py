"""Routers in both spellings."""

from __future__ import annotations

import pytest

from llamaswap.config.model import SchedulerConfig, SchedulerName
from support.config_checks import TWO_MODELS, loaded, rejected, warnings_of


def routed(text: str) -> str:
    return f"{TWO_MODELS}\n{text}"


def test_without_routing_everything_is_as_in_llama_swap() -> None:
    config = loaded(TWO_MODELS)
    assert (config.router, config.matrix, config.scheduler) == ("group", None, SchedulerConfig())
    assert config.scheduler.use is SchedulerName.FIFO


def test_both_spellings_of_groups_mean_the_same() -> None:
    old = loaded(routed("groups: {g: {members: [a]}}"))
    new = loaded(routed("routing: {router: {settings: {groups: {g: {members: [a]}}}}}"))
    assert old.groups == new.groups


@pytest.mark.parametrize(
    "text",
    [
        "groups: {g: {members: [a]}}\nrouting: {router: {use: group}}",
        "matrix: {sets: {s: a}}\nrouting: {router: {settings: {groups: {g: {members: [b]}}}}}",
        "groups: {g: {members: [a]}}\nmatrix: {sets: {s: a}}",
        "routing: {router: {use: matrix}}",
        "routing: {router: {use: Group}}",
    ],
)
def test_routers_that_contradict_each_other_are_refused(text: str) -> None:
    assert len(rejected(routed(text))) == 1


def test_a_section_in_the_wrong_place_is_warned_about() -> None:
    assert warnings_of("routing: {groups: {}, router: {matrix: ~}}") == [
        "1:11: routing.groups: unknown key",
        "1:32: routing.router.matrix: unknown key",
    ]


def test_the_router_in_use_decides_and_the_other_is_not_looked_at() -> None:
    both = "{groups: {g: {members: [a]}}, matrix: {sets: {s: 'a &'}}}"
    assert loaded(routed(f"routing: {{router: {{settings: {both}}}}}")).router == "group"
    assert rejected(routed(f"routing: {{router: {{use: matrix, settings: {both}}}}}"))
