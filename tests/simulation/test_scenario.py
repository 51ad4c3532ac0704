"""Scenarios: one box under several schedulers."""

from __future__ import annotations

from dataclasses import replace

from llamaswap.config.model import SchedulerConfig, SchedulerName, SerialSettings
from llamaswap.simulation.engine import simulate
from llamaswap.simulation.scenario import DEFAULT_LOAD, box_of, describe
from support.simulation_traces import arrival


def test_a_box_of_models_has_the_serial_scheduler_and_models_that_evict_each_other() -> None:
    scenario = box_of(["b", "a"])

    assert list(scenario.config.models) == ["a", "b"]
    assert scenario.scheduler.use is SchedulerName.SERIAL
    assert simulate([arrival(0.0, "a"), arrival(99.0, "b")], scenario).swaps == 1


def test_a_scenario_is_called_by_its_settings_unless_it_has_a_name() -> None:
    plain = box_of("A")

    assert plain.name == "serial 60/10"
    assert box_of("A", "as it is").name == "as it is"
    assert plain.with_serial(swap_budget=15.0).name == "serial 60/10/15"
    assert plain.with_serial(aging_divisor=0.5, swap_affinity_bonus=0).name == "serial 0.5/0"
    assert plain.with_serial("patient", aging_divisor=600.0).name == "patient"
    assert plain.baseline().name == describe(SchedulerConfig()) == "fifo"


def test_other_settings_are_left_as_they_are() -> None:
    scenario = box_of("A", width={"A": 4}, max_queue={"batch": 9}).with_serial(swap_budget=15.0)

    assert scenario.scheduler.serial == SerialSettings(
        swap_budget=15.0, width={"A": 4}, max_queue={"batch": 9}
    )


def test_loads_take_what_is_known_of_the_model() -> None:
    scenario = replace(box_of("AB"), loads={"A": 90.0})

    assert (scenario.load_of("A"), scenario.load_of("B")) == (90.0, DEFAULT_LOAD)


def test_a_server_works_on_as_many_at_once_as_its_width_and_still_does_under_another_scheduler() -> None:
    scenario = replace(box_of("ABC", width={"A": 4, "B": 2}), parallel={"B": 3})

    for one in (scenario, scenario.baseline(), scenario.with_serial(width={})):
        assert [one.parallel_of(model) for model in "ABC"] == [4, 3, 1]
    assert scenario.with_serial(width={"C": 8}).parallel_of("C") == 8


def test_the_baseline_takes_more_of_a_models_requests_than_fifo_does_by_default() -> None:
    burst = [arrival(0.0, "A") for _ in range(50)]
    scenario = box_of("A")

    limited = simulate(burst, scenario.under(SchedulerConfig(use=SchedulerName.FIFO)))
    lifted = simulate(burst, scenario.baseline())

    assert sum(limited.refused.values()) == 40
    assert lifted.waits.count == 50
