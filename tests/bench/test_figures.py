"""Figures: ratios within a round, promises, and what is written down of them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.figures import Curve, Figure, Target, print_table, table_lines, write_results

TWICE = Target("at most 2 x nginx", "nginx", factor=2)
SMALL = Target("at most 60 MiB", limit=60)

positive = st.floats(min_value=1e-6, max_value=1e6)


def figure(*targets: Target, **samples: list[float]) -> Figure:
    return Figure("cost", "what it costs", "us", samples, targets)


def test_a_ratio_is_taken_within_each_round() -> None:
    # The machine was ten times slower in the second round, for both.
    costs = figure(TWICE, nginx=[10.0, 100.0, 20.0], llamaswap=[15.0, 160.0, 34.0])

    assert costs.ratio("llamaswap") == (1.6, 1.5, 1.7)


@given(st.lists(st.tuples(positive, positive), min_size=1, max_size=9), positive)
def test_how_fast_the_machine_is_does_not_change_a_ratio(
    rounds: list[tuple[float, float]], factor: float
) -> None:
    slower = [(mine * factor, theirs * factor) for mine, theirs in rounds]

    def ratio(pairs: list[tuple[float, float]]) -> tuple[float, float, float]:
        mine, theirs = zip(*pairs, strict=True)
        return figure(TWICE, llamaswap=list(mine), nginx=list(theirs)).ratio("llamaswap")

    assert ratio(slower) == pytest.approx(ratio(rounds))


def test_rounds_that_one_of_them_missed_are_no_rounds() -> None:
    costs = figure(TWICE, nginx=[1.0, 2.0], llamaswap=[1.0])

    with pytest.raises(ValueError, match="zip"):
        costs.ratio("llamaswap")


def test_a_round_in_which_the_reference_cost_nothing_counts_against_us() -> None:
    costs = figure(TWICE, nginx=[0.0, 1.0, -1.0], llamaswap=[1.0, 1.0, 1.0])

    assert costs.ratio("llamaswap") == (math.inf, 1.0, math.inf)
    assert costs.verdict()[0].met is False


@pytest.mark.parametrize(("ours", "met"), [(2.0, True), (2.01, False)])
def test_a_promise_of_a_ratio_holds_up_to_its_factor(ours: float, met: bool) -> None:
    (verdict,) = figure(TWICE, nginx=[1.0, 1.0, 1.0], llamaswap=[9.0, ours, 0.0]).verdict()

    assert (verdict.value, verdict.met) == (ours, met)


@pytest.mark.parametrize(("ours", "met"), [(60.0, True), (60.1, False)])
def test_a_promise_of_an_amount_needs_no_reference(ours: float, met: bool) -> None:
    (verdict,) = figure(SMALL, llamaswap=[ours]).verdict()

    assert (verdict.value, verdict.met) == (ours, met)


@pytest.mark.parametrize("missing", ["nginx", "llamaswap"])
def test_a_promise_without_both_of_them_is_not_judged(missing: str) -> None:
    samples = {"nginx": [1.0], "llamaswap": [1.0]}
    del samples[missing]

    (verdict,) = figure(TWICE, **samples).verdict()

    assert (verdict.value, verdict.met) == (None, None)


def test_a_promise_may_be_about_somebody_else() -> None:
    flat = Target("as fast with many as with few", "few", factor=3, subject="many")

    (verdict,) = figure(flat, few=[1.0], many=[2.5]).verdict()

    assert (verdict.value, verdict.met) == (2.5, True)


def test_results_are_json_with_a_null_for_what_json_cannot_say(tmp_path: Path) -> None:
    path = tmp_path / "new" / "results.json"
    costs = figure(TWICE, nginx=[0.0], llamaswap=[1.0])
    curve = Curve("growth", "how it grows", "streams", "us", {"nginx": [(1, 2.0), (10, 3.0)]})

    write_results(path, [costs], [curve])

    written = json.loads(path.read_text())
    assert written["figures"]["cost"]["targets"] == [
        {"wording": "at most 2 x nginx", "value": None, "met": False}
    ]
    ours = written["figures"]["cost"]["contestants"]["llamaswap"]
    assert ours == {"median": 1.0, "rounds": [1.0], "ratio": {"median": None, "low": None, "high": None}}
    assert written["curves"]["growth"]["series"] == {"nginx": [[1, 2.0], [10, 3.0]]}
    assert written["machine"]["processors"] >= 1


def test_the_table_tells_the_median_the_ratio_and_what_became_of_the_promise() -> None:
    lines = list(table_lines(figure(TWICE, nginx=[10.0, 10.0], llamaswap=[24.0, 26.0])))

    assert lines[0] == "what it costs [cost], us"
    assert lines[2].split() == ["llamaswap", "25", "2.50", "x", "nginx", "(2.40", "..", "2.60)"]
    assert lines[3] == "  MISSED with 2.5: at most 2 x nginx"


def test_the_table_warns_of_absolute_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    print_table([figure(SMALL, llamaswap=[50.0])])

    printed = capsys.readouterr().out
    assert printed.startswith("Absolute numbers are those of this machine")
    assert "kept with 50: at most 60 MiB" in printed
