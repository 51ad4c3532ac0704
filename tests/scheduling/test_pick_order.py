"""The order in which tickets will go, without a clock; test_forecast holds it against the scheduler."""

from __future__ import annotations

from collections.abc import Mapping

from llamaswap.config.model import GroupConfig
from llamaswap.scheduling.budget import SwapBudget
from llamaswap.scheduling.groups import GroupPlanner
from llamaswap.scheduling.pick_order import Pick, Procession
from llamaswap.scheduling.score import Formula
from llamaswap.scheduling.vocabulary import Facts
from support.scheduling_queues import RUNS, room_of, steady_estimates, tickets_from
from support.scheduling_setup import rivals
from support.scheduling_walks import MODELS

FORMULA = Formula(60_000_000, 10)
Rows = list[tuple[str, int, float]]


def walk(
    rows: Rows,
    *,
    ready: str = "",
    loading: str = "",
    budget: float = 0.0,
    groups: tuple[GroupConfig, ...] = rivals(MODELS),
) -> list[Pick]:
    resident = frozenset(ready)
    return list(
        Procession(
            room_of(tickets_from(rows), FORMULA).lanes(),
            FORMULA.affinity_key(),
            GroupPlanner(groups).make_room,
            SwapBudget(budget, steady_estimates()),
            Facts(now=100.0, running=resident, ready=resident),
            loading,
        )
    )


def order(picks: list[Pick]) -> str:
    """Return the models as they go, in capitals; small ones need no load."""
    return "".join(pick.model if pick.swap else pick.model.lower() for pick in picks)


def one_each(*models: str) -> Rows:
    return [(model, 0, float(number)) for number, model in enumerate(models)]


def test_nobody_waits() -> None:
    assert walk([]) == []


def test_a_model_that_was_brought_keeps_its_own_with_it() -> None:
    assert order(walk(one_each("B", "A", "B", "A", "B"), ready="A")) == "aaBbb"


def test_whoever_is_older_than_affinity_is_worth_goes_first() -> None:
    assert order(walk([("B", 0, 0.0), ("A", 0, 599.0)], ready="A")) == "aB"
    assert order(walk([("B", 0, 0.0), ("A", 0, 600.0)], ready="A")) == "BA"  # equal: who came first
    assert order(walk([("B", 0, 0.0), ("A", 0, 601.0)], ready="A")) == "BA"


def test_a_load_under_way_is_over_when_the_next_one_goes() -> None:
    assert order(walk(one_each("A", "B"), ready="A", loading="B")) == "bA"


def test_models_that_bear_each_other_stay() -> None:
    side_by_side = (GroupConfig(id="g", members=("A", "B"), swap=False),)

    assert order(walk(one_each("A", "B", "B", "A"), groups=side_by_side)) == "AaBb"
    assert order(walk([("A", 0, 0.0), ("B", 9, 1.0), ("A", 5, 2.0)], groups=side_by_side)) == "BAa"


def test_the_budget_lets_the_leaving_model_finish_what_fits_and_is_renewed_by_the_load() -> None:
    rows = [("B", 50, 0.0), *one_each("A", "A", "A", "A"), ("B", 0, 9.0)]

    picks = walk(rows, ready="A", budget=2.5 * RUNS["A"])

    assert order(picks) == "aaBbAa"
    assert [pick.budget for pick in picks] == [True, True, False, False, False, False]


def test_a_model_that_is_not_to_go_needs_no_budget() -> None:
    side_by_side = (GroupConfig(id="g", members=("A", "B"), swap=False),)
    rows: Mapping[str, Rows] = {"rows": [("B", 50, 0.0), ("A", 0, 0.0)]}

    picks = walk(rows["rows"], ready="A", budget=100.0, groups=side_by_side)

    assert order(picks) == "Ba"


def test_a_ready_model_beside_which_others_must_go_needs_no_start() -> None:
    groups = (
        GroupConfig(id="lonely", members=("A",), exclusive=True),
        GroupConfig(id="other", members=("B",), exclusive=False),
    )

    picks = walk(one_each("A"), ready="AB", groups=groups)

    assert [(pick.swap, pick.start) for pick in picks] == [(True, False)]
