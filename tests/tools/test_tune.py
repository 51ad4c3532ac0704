"""`llama-swap tune`, as a person gives it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from llamaswap.config.load import load_text
from llamaswap.config.model import SchedulerName, SerialSettings
from llamaswap.tools.tune import snippet
from support.replays import Told, replayed

MODELS = 'models: {chat: {cmd: s, proxy: "http://h"}, coder: {cmd: s, proxy: "http://h"}}\n'
FEW = ("--divisors", "60,10", "--bonuses", "10,99", "--budgets", "0,60", "--workers", "1")


def tuned(folder: Path, *words: str | Path) -> Told:
    return replayed("tune", folder, *FEW, *words)


def test_it_shows_fifo_the_present_and_what_is_worth_having_and_recommends_one(tmp_path: Path) -> None:
    answer = tuned(tmp_path)

    assert (answer.code, answer.err) == (0, "")
    assert re.match(r"setting +interactive p95 +normal p95 +batch p95 +swaps +lost to loads\n", answer.out)
    assert re.search(r"^fifo +\d", answer.out, re.MULTILINE)
    assert re.search(r"^60/10 \(now\) +\d", answer.out, re.MULTILINE)
    assert "8 settings were tried" in answer.out
    assert "Recommended: agingDivisor" in answer.out


def test_what_is_recommended_can_be_pasted_into_a_configuration(tmp_path: Path) -> None:
    text = tuned(tmp_path).out
    recommended = json.loads(tuned(tmp_path, "--json").out)["recommended"]

    scheduler = load_text(MODELS + text[text.index("routing:") :]).scheduler

    assert scheduler.use is SchedulerName.SERIAL
    assert scheduler.serial.aging_divisor == recommended["agingDivisor"]
    assert scheduler.serial.swap_affinity_bonus == recommended["swapAffinityBonus"]
    assert scheduler.serial.swap_budget == recommended["swapBudgetSeconds"]


def test_every_setting_survives_being_pasted() -> None:
    settings = SerialSettings(aging_divisor=0.5, swap_affinity_bonus=0, swap_budget=1800.0, width={"chat": 4})

    assert load_text(MODELS + snippet(settings)).scheduler.serial == settings


def test_for_programs_it_is_json(tmp_path: Path) -> None:
    facts = json.loads(tuned(tmp_path, "--json", "--set", "agingDivisor=5").out)

    assert len(facts["tried"]) == 8
    assert {one["front"] for one in facts["tried"]} == {True, False}
    assert facts["now"]["name"] == "5/10"
    assert facts["recommended"]["name"] in {one["name"] for one in facts["tried"] if one["front"]}
    assert facts["words"]


def test_the_longest_batch_wait_may_count(tmp_path: Path) -> None:
    assert "batch longest" in tuned(tmp_path, "--longest-batch").out


def test_a_width_holds_for_all_that_is_tried(tmp_path: Path) -> None:
    assert 'width: {"painter": 3}' in tuned(tmp_path, "--set", "width.painter=3").out


def test_processes_side_by_side_come_to_the_same(tmp_path: Path) -> None:
    assert tuned(tmp_path, "--workers", "2").out == tuned(tmp_path).out


def test_a_picture_shows_every_setting(tmp_path: Path) -> None:
    assert tuned(tmp_path, "--plot", tmp_path / "a.png").code == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_what_cannot_be_used_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    answer = tuned(tmp_path, "--set", "width.nobody=2")

    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("--set: width.nobody")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--divisors", "60,x"], "argument --divisors: expected numbers from 0, got '60,x'"),
        (["--bonuses", "100"], "argument --bonuses: expected whole numbers from 0 to 99, got '100'"),
        (["--budgets", ""], "argument --budgets: expected numbers from 0, got ''"),
        (["--tolerance", "-1"], "argument --tolerance: expected numbers from 0, got '-1'"),
        (["--workers", "0"], "argument --workers: expected a whole number above 0, got '0'"),
    ],
)
def test_words_that_make_no_sense_are_exit_code_2(tmp_path: Path, words: list[str], why: str) -> None:
    answer = tuned(tmp_path, *words)

    assert answer.code == 2
    assert why in answer.err
