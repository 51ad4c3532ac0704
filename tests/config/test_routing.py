"""Routers in both spellings, and schedulers."""

from __future__ import annotations

import pytest

from llamaswap.config.model import SchedulerConfig, SchedulerName, SerialSettings
from support.config_checks import TWO_MODELS, loaded, rejected, warnings_of


def routed(text: str) -> str:
    return f"{TWO_MODELS}\n{text}"


def serial(settings: str) -> str:
    return f"routing: {{scheduler: {{use: serial, settings: {{serial: {{{settings}}}}}}}}}"


def test_without_routing_everything_is_as_in_llama_swap() -> None:
    config = loaded(TWO_MODELS)
    assert (config.router, config.matrix, config.scheduler) == ("group", None, SchedulerConfig())
    assert config.scheduler.use is SchedulerName.FIFO


def test_the_serial_scheduler_has_defaults() -> None:
    config = loaded("routing: {scheduler: {use: serial}}")
    assert config.scheduler == SchedulerConfig(
        use=SchedulerName.SERIAL, configured=True, serial=SerialSettings()
    )
    assert (config.scheduler.serial.aging_divisor, config.scheduler.serial.swap_affinity_bonus) == (60.0, 10)


@pytest.mark.parametrize(
    ("text", "configured"),
    [
        (TWO_MODELS, False),
        ("routing: {scheduler: {}}", False),
        ("routing: {scheduler: {use: fifo}}", True),
        ("routing: {scheduler: {settings: {fifo: {}}}}", True),
    ],
)
def test_a_scheduler_that_was_chosen_is_told_from_the_default(text: str, *, configured: bool) -> None:
    assert loaded(text).scheduler.configured is configured


def test_its_settings_are_read() -> None:
    settings = loaded(serial("agingDivisor: 0.5, swapAffinityBonus: 99")).scheduler.serial
    assert settings == SerialSettings(aging_divisor=0.5, swap_affinity_bonus=99)


@pytest.mark.parametrize("value", ["-1", "-0.1", ".inf", ".nan", "'60'", "true", "[1]", "60s", "2024-01-02"])
def test_a_bad_aging_divisor_is_refused_at_its_place(value: str) -> None:
    text = serial(f"agingDivisor: {value}")
    (line,) = rejected(text)
    column = text.index(value) + 1
    path = "routing.scheduler.settings.serial.agingDivisor"
    assert line.startswith(f"1:{column}: {path}: expected seconds per point, a number from 0, got ")


@pytest.mark.parametrize("value", ["-1", "100", "10.5", "10.0", "'10'", "true", "{}"])
def test_a_bad_bonus_is_refused_at_its_place(value: str) -> None:
    text = serial(f"swapAffinityBonus: {value}")
    (line,) = rejected(text)
    path = "routing.scheduler.settings.serial.swapAffinityBonus"
    assert line.startswith(
        f"1:{text.index(': ' + value) + 3}: {path}: expected points, a whole number from 0 to 99"
    )


def test_an_unknown_scheduler_is_refused() -> None:
    assert rejected("routing: {scheduler: {use: lifo}}") == [
        "1:28: routing.scheduler.use: expected one of fifo, serial, got 'lifo'"
    ]


def test_case_044_a_bonus_without_aging_is_warned_about_because_a_request_can_starve() -> None:
    assert "for ever" in warnings_of(serial("agingDivisor: 0"))[0]
    assert warnings_of(serial("agingDivisor: 0, swapAffinityBonus: 0")) == []
    assert warnings_of(serial("agingDivisor: 0").replace("use: serial", "use: fifo")) == []


def test_priorities_name_models_of_ones_own() -> None:
    fifo = "routing: {scheduler: {settings: {fifo: {priority: {a: 5, bee: -1, zz: 1}}}}}"
    assert [line.partition(": ")[2] for line in rejected(routed(fifo))] == [
        "routing.scheduler.settings.fifo.priority.zz: 'zz' is no model or alias here"
    ]
    good = fifo.replace(", zz: 1", "")
    assert dict(loaded(routed(good)).scheduler.fifo_priority) == {"a": 5, "bee": -1}
    assert "write 'b'" in warnings_of(routed(good))[0]


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
