"""The dashboard that is shipped, as far as one can tell without a Grafana."""

from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import pytest

from support.telemetry_dashboard import dashboard, metrics_in, panels, queries
from support.telemetry_names import exported_metrics

SHOWN_NOWHERE = {
    "llamaswap_memory_free_bytes",
    "llamaswap_swap_total_bytes",
    "llamaswap_load_average",
    "llamaswap_gpu_vram_temperature_celsius",
    "llamaswap_gpu_memory_util_percent",
    "llamaswap_gpu_fan_speed_percent",
}
"""Metrics that no panel shows: others tell the same, or hardly anybody would look."""

titles = [panel["title"] for panel in panels()]


def test_it_is_a_dashboard_that_grafana_11_and_later_take() -> None:
    board = dashboard()

    assert board["schemaVersion"] >= 39
    assert board["id"] is None, "else it would replace whatever has this number there"
    assert board["uid"] == "llamaswap"
    assert board["title"]
    assert board["time"]["from"]


def test_every_panel_has_a_number_of_its_own_a_title_and_an_explanation() -> None:
    numbers = [panel["id"] for panel in dashboard()["panels"]]

    assert len(numbers) == len(set(numbers))
    assert len(titles) == len(set(titles))
    for panel in panels():
        assert panel["description"].endswith("."), panel["title"]


def test_no_two_panels_lie_on_each_other_and_none_reaches_over_the_edge() -> None:
    places = [panel["gridPos"] for panel in dashboard()["panels"]]

    for place in places:
        assert place["x"] >= 0
        assert place["x"] + place["w"] <= 24
    for one, other in combinations(places, 2):
        assert not overlap(one, other), (one, other)


def overlap(one: dict[str, int], other: dict[str, int]) -> bool:
    """Whether two places share a field of the grid."""
    beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
    below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
    return not (beside or below)


def test_the_place_where_the_numbers_come_from_can_be_chosen() -> None:
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    variables = dashboard()["templating"]["list"]

    assert [variable["name"] for variable in variables] == ["datasource", "instance", "model"]
    assert (variables[0]["type"], variables[0]["query"]) == ("datasource", "prometheus")
    assert all(variable["datasource"] == chosen for variable in variables[1:])
    for panel in panels():
        assert panel["datasource"] == chosen
        for target in panel["targets"]:
            assert target["datasource"] == chosen


def test_every_query_is_of_the_daemon_that_was_chosen_and_knows_no_other_variable() -> None:
    for panel in panels():
        for target in panel["targets"]:
            selectors = re.findall(r"llamaswap_\w+({[^}]*})?", target["expr"])
            assert selectors, target["expr"]
            assert all('instance=~"$instance"' in selector for selector in selectors), target["expr"]
    for title, expression in queries():
        assert "$" not in expression, title


def test_the_letters_of_a_panels_queries_differ() -> None:
    for panel in panels():
        letters = [target["refId"] for target in panel["targets"]]
        assert len(letters) == len(set(letters)), panel["title"]


def test_what_it_asks_for_is_what_the_daemon_exports_and_next_to_nothing_is_left_out() -> None:
    asked: set[str] = set()
    for _, expression in queries():
        asked |= metrics_in(expression)
    for variable in dashboard()["templating"]["list"][1:]:
        assert metrics_in(variable["definition"]) <= exported_metrics()

    assert exported_metrics() - asked == SHOWN_NOWHERE
    assert asked <= exported_metrics()


@pytest.mark.parametrize(
    "wanted",
    [
        "Waiting, by band",
        "Longest wait, by band",
        "Waits of those who were dispatched",
        "Dispatched per minute",
        "Reorders",
        "What the box does",
        "Loads, by model",
        "Loads, by reason",
        "States of the models",
        "Error of the forecasts",
        "Turned away",
        "GPU, memory",
        "Processors, busy",
    ],
)
def test_a_question_that_people_ask_has_its_panel(wanted: str) -> None:
    assert wanted in titles


def test_counters_are_shown_as_rates_or_increases() -> None:
    counter = re.compile(r"llamaswap_\w+_(?:total|bucket|sum|count)\b(?:{[^}]*})?(.?)")
    for title, expression in queries():
        followers: list[Any] = counter.findall(expression)
        assert set(followers) <= {"["}, title
