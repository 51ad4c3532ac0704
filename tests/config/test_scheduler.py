"""Schedulers and their settings."""

from __future__ import annotations

import pytest

from llamaswap.config.model import SchedulerConfig, SchedulerName, SerialSettings
from support.config_checks import TWO_MODELS, loaded, rejected, warnings_of

BANDS = "interactive, normal, batch"
OURS = "width: {a: 2}, maxWait: {normal: 5}, maxQueue: {batch: 9}, swapBudgetSeconds: 3"


def routed(text: str) -> str:
    return f"{TWO_MODELS}\n{text}"


def serial(settings: str) -> str:
    return f"routing: {{scheduler: {{use: serial, settings: {{serial: {{{settings}}}}}}}}}"


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


def complaints(settings: str) -> list[str]:
    """What is wrong with settings of the serial scheduler, without places."""
    prefix = "routing.scheduler.settings.serial."
    return [line.partition(": ")[2].removeprefix(prefix) for line in rejected(routed(serial(settings)))]


def test_a_queue_has_neither_budget_nor_width_nor_bounds_unless_they_are_set() -> None:
    settings = loaded(routed(serial(""))).scheduler.serial
    assert (settings.swap_budget, settings.width, settings.max_wait, settings.max_queue) == (0.0, {}, {}, {})


def test_they_are_read_for_models_by_any_name_and_for_bands() -> None:
    text = """
        swapBudgetSeconds: 2.5, width: {a: 4, bee: 2},
        maxWait: {interactive: 30s, normal: 10m, batch: 90.5}, maxQueue: {batch: 500, normal: 1}
    """
    settings = loaded(routed(serial(text.strip()))).scheduler.serial
    assert settings == SerialSettings(
        swap_budget=2.5,
        width={"a": 4, "b": 2},
        max_wait={"interactive": 30.0, "normal": 600.0, "batch": 90.5},
        max_queue={"batch": 500, "normal": 1},
    )


def test_what_says_that_nothing_is_set_sets_nothing() -> None:
    waits = "maxWait: {normal: 0, batch: 0s, interactive: ~}, maxQueue: {batch: 0}"
    text = f"swapBudgetSeconds: ~, width: {{a: 1, b: ~}}, {waits}"
    assert loaded(routed(serial(text))).scheduler.serial == SerialSettings()
    assert loaded(routed(serial("width: ~, maxWait: ~, maxQueue: {}"))).scheduler.serial == SerialSettings()


@pytest.mark.parametrize("value", ["-1", ".inf", ".nan", "30s", "true", "[1]"])
def test_a_bad_budget_is_refused(value: str) -> None:
    (line,) = complaints(f"swapBudgetSeconds: {value}")
    assert line.startswith("swapBudgetSeconds: expected seconds, a number from 0, got ")


@pytest.mark.parametrize("value", ["0", "-1", "2.0", "'2'", "true", "[]"])
def test_a_bad_width_is_refused(value: str) -> None:
    (line,) = complaints(f"width: {{a: {value}}}")
    assert line.startswith("width.a: expected requests at a time, a whole number from 1, got ")


def test_a_width_is_a_models_of_ones_own_and_is_given_once() -> None:
    assert complaints("width: {be: 2, b: 2, bee: 3, zz: 1}") == [
        "width.be: 'be' is no model or alias here; did you mean 'bee'?",
        "width.bee: is the model of 'b', which stands here, too",
        "width.zz: 'zz' is no model or alias here",
    ]


@pytest.mark.parametrize("value", ["-1", "-5s", "soon", "30", "true", "[]", "9e99", ".inf", "2024-01-02"])
def test_a_bad_wait_is_refused_at_its_place(value: str) -> None:
    value = "'30'" if value == "30" else value
    text = routed(serial(f"maxWait: {{normal: {value}}}"))
    (line,) = rejected(text)
    column = text.splitlines()[1].index(f"normal: {value}") + len("normal: ") + 1
    path = "routing.scheduler.settings.serial.maxWait.normal"
    assert line.startswith(f"2:{column}: {path}: expected seconds from 0 or a duration like 30s, got ")


@pytest.mark.parametrize("value", ["-1", "1.5", "'5'", "5s", "false", "{}"])
def test_a_bad_length_is_refused(value: str) -> None:
    (line,) = complaints(f"maxQueue: {{batch: {value}}}")
    assert line.startswith("maxQueue.batch: expected requests, a whole number from 0, got ")


@pytest.mark.parametrize("key", ["maxWait", "maxQueue"])
def test_a_band_that_there_is_not_is_a_mistake_and_never_a_bound_that_is_missed(key: str) -> None:
    text = routed(serial(f"{key}: {{Batch: 5, urgent: 1, normal: 1}}"))
    where = text.splitlines()[1].index("Batch") + 1
    first, second = rejected(text)
    assert first == (
        f"2:{where}: routing.scheduler.settings.serial.{key}.Batch: 'Batch' is no band: expected one of "
        f"{BANDS}; did you mean 'batch'?"
    )
    assert second.endswith(f"{key}.urgent: 'urgent' is no band: expected one of {BANDS}")


def test_what_fifo_does_not_look_at_is_warned_about_key_by_key() -> None:
    fifo = serial(OURS).replace("use: serial", "use: fifo")
    found = [line.partition(": ")[2] for line in warnings_of(routed(fifo))]
    assert sorted(found) == sorted(
        f"routing.scheduler.settings.serial.{key}: has no effect under fifo"
        for key in ("swapBudgetSeconds", "width", "maxWait", "maxQueue")
    )
    assert warnings_of(routed(serial(OURS))) == []
    assert warnings_of(routed(fifo.replace(OURS, "agingDivisor: 30"))) == []


def test_a_budget_that_is_off_is_nothing_to_warn_about() -> None:
    off = serial("swapBudgetSeconds: 0, maxWait: {batch: 0}, width: {a: 1}, maxQueue: {}")
    assert warnings_of(routed(off.replace("use: serial", "use: fifo"))) == []
