"""`llama-swap simulate`, as a person gives it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from support.replays import CONFIG, replayed, told


def test_it_shows_the_settings_beside_fifo(tmp_path: Path) -> None:
    answer = replayed("simulate", tmp_path, "--set", "swapBudgetSeconds=60")

    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith("6 requests; a load takes: chat 8 s, coder 14 s, painter 20 s\n\n")
    assert re.search(r"^ +fifo +serial 60/10/60$", answer.out, re.MULTILINE)
    assert re.search(r"^interactive, wait in s +p50 +\S+ +\S+$", answer.out, re.MULTILINE)


def test_the_same_words_give_the_same_text(tmp_path: Path) -> None:
    assert replayed("simulate", tmp_path) == replayed("simulate", tmp_path)


def test_for_programs_it_is_json(tmp_path: Path) -> None:
    facts = json.loads(replayed("simulate", tmp_path, "--json", "--against", "agingDivisor=5").out)

    assert (facts["requests"], facts["loads"]["coder"], facts["notes"]) == (6, 14, [])
    assert [one["name"] for one in facts["results"]] == ["fifo", "serial 5/10", "serial 60/10"]
    # The second message would like to begin at 70 s; a picture is painted until 100 s under fifo.
    fifo, _, serial = facts["results"]
    assert serial["bands"]["interactive"]["max"] < fifo["bands"]["interactive"]["max"]


def test_a_configuration_tells_models_and_settings(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG)

    answer = replayed("simulate", tmp_path, "--config", tmp_path / "c.yaml")

    assert "serial 30/10" in answer.out


def test_what_was_assumed_is_said_below_the_table(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("arrival_s,model,priority,run_s\n0,a,0,1\n")

    answer = told("simulate", "--trace", tmp_path / "t.csv")

    assert "Nobody says how long a load of a takes: 15 s are assumed.\n" in answer.out


def test_a_picture_shows_every_setting(tmp_path: Path) -> None:
    answer = replayed("simulate", tmp_path, "--plot", tmp_path / "a.svg")

    assert answer.code == 0
    assert (tmp_path / "a.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--plot", "a.gif"], "a.gif: a plot's name ends in .png or .svg"),
        (["--set", "width=3"], "--set: expected KEY=VALUE"),
        (["--trace", "missing.csv"], "missing.csv: No such file or directory"),
        (["--measured", "missing.db"], "missing.db: no activity store that can be read"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_exit_code_1(tmp_path: Path, words: list[str], why: str) -> None:
    answer = replayed("simulate", tmp_path, *words)

    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith(why)
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--speed", "0"], "argument --speed: expected a number above 0, got '0'"),
        (["--limit", "-1"], "argument --limit: expected a whole number above 0, got '-1'"),
        (["--seed", "x"], "argument --seed: invalid int value"),
    ],
)
def test_words_that_make_no_sense_are_exit_code_2(tmp_path: Path, words: list[str], why: str) -> None:
    answer = replayed("simulate", tmp_path, *words)

    assert answer.code == 2
    assert why in answer.err


def test_it_wants_a_trace() -> None:
    assert told("simulate").code == 2
