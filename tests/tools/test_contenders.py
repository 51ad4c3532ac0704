"""Settings from the words of a command line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from llamaswap.config.load import load_text
from llamaswap.config.model import SchedulerName
from llamaswap.simulation.records import Unusable
from llamaswap.simulation.scenario import Scenario, box_of
from llamaswap.tools.contenders import contenders, name_of, with_changes
from support.replays import CONFIG


@pytest.fixture
def box() -> Scenario:
    return Scenario(name="", config=load_text(CONFIG))


def names(scenarios: list[Scenario]) -> list[str]:
    return [scenario.name for scenario in scenarios]


def test_fifo_comes_first_and_the_settings_in_question_last(box: Scenario) -> None:
    played = contenders(box, ["swapBudgetSeconds=15", "swapAffinityBonus=20"], ["serial", "agingDivisor=5"])

    assert names(played) == ["fifo", "serial 60/10", "serial 5/10", "serial 30/20/15"]
    assert played[0].scheduler.use is SchedulerName.FIFO


def test_without_words_it_is_the_serial_scheduler_as_configured(box: Scenario) -> None:
    assert names(contenders(box, [], [])) == ["fifo", "serial 30/10"]


def test_the_same_settings_are_played_once(box: Scenario) -> None:
    assert names(contenders(box, [], ["fifo", "config", "agingDivisor=30"])) == ["fifo", "serial 30/10"]


def test_as_configured_may_be_fifo() -> None:
    fifo = Scenario(name="", config=load_text(CONFIG.replace("use: serial", "use: fifo")))

    assert names(contenders(fifo, [], ["config"])) == ["fifo", "serial 30/10"]


def test_a_width_is_by_model_or_alias_and_every_setting_has_servers_that_allow_it(box: Scenario) -> None:
    played = contenders(box, ["width.c=4"], ["config"])

    assert names(played)[-1] == "serial 30/10 chat x4"
    assert [one.parallel_of("chat") for one in played] == [4, 4, 4]
    assert [one.parallel_of("coder") for one in played] == [1, 1, 1]


def test_servers_may_be_more_parallel_than_any_width(box: Scenario) -> None:
    said = replace(box, parallel={"chat": 8})

    assert [one.parallel_of("chat") for one in contenders(said, ["width.chat=4"], [])] == [8, 8]


def test_a_width_of_1_takes_one_away(box: Scenario) -> None:
    wide = with_changes(box.scheduler.serial, box.config, ["width.chat=4", "width.coder=2"], "--set")

    assert with_changes(wide, box.config, ["width.chat=1"], "--set").width == {"coder": 2}


def test_a_name_tells_settings_apart() -> None:
    scheduler = box_of(["a", "b"], width={"b": 2, "a": 3}, swap_budget=15.0).scheduler

    assert name_of(scheduler) == "serial 60/10/15 a x3 b x2"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("agingDivisor", "expected KEY=VALUE with one of agingDivisor, swapAffinityBonus"),
        ("maxWait=3", "expected KEY=VALUE"),
        ("width=3", "expected KEY=VALUE"),
        ("agingDivisor.x=3", "expected KEY=VALUE"),
        ("agingDivisor=soon", "agingDivisor: expected seconds per point, a number from 0, got 'soon'"),
        ("swapAffinityBonus=100", "swapAffinityBonus: expected points, a whole number from 0 to 99, got 100"),
        ("width.chat=0", "width.chat: expected requests at a time, a whole number from 1, got 0"),
        ("width.nobody=2", "width.nobody: 'nobody'"),
        ("agingDivisor={", "'{' is no value"),
    ],
)
def test_words_that_make_no_sense_are_complained_about_as_in_a_configuration(
    box: Scenario, words: str, why: str
) -> None:
    with pytest.raises(Unusable) as refused:
        contenders(box, [words], [])
    assert str(refused.value).startswith(f"--set: {why}")

    with pytest.raises(Unusable) as refused:
        contenders(box, [], [words])
    assert str(refused.value).startswith(f"--against: {why}")
