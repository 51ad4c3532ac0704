"""The defaults that editors show for who goes first are the ones that the loader uses."""

from __future__ import annotations

from typing import Any

from llamaswap.config.model import CallerConfig, KeepAliveConfig, SerialSettings
from llamaswap.scheduling.vocabulary import Band
from llamaswap.tools.schema_scheduling import keepalive, priorities, scheduler

SERIAL = scheduler()["properties"]["settings"]["properties"]["serial"]["properties"]


def defaults(keys: dict[str, Any]) -> dict[str, Any]:
    return {key: value["default"] for key, value in keys.items() if "default" in value}


def test_the_serial_scheduler_has_the_defaults_that_are_shown() -> None:
    usual = SerialSettings()

    assert defaults(SERIAL) == {
        "agingDivisor": usual.aging_divisor,
        "swapAffinityBonus": usual.swap_affinity_bonus,
        "swapBudgetSeconds": usual.swap_budget,
    }


def test_every_band_can_be_bounded() -> None:
    for key in ("maxWait", "maxQueue"):
        assert defaults(SERIAL[key]["properties"]) == {str(band): 0 for band in Band}


def test_a_caller_and_signs_of_life_have_the_defaults_that_are_shown() -> None:
    caller = priorities()["properties"]["callers"]["items"]["properties"]

    assert defaults(caller) == {"offset": CallerConfig(name="").offset}
    assert defaults(keepalive()["properties"]) == {
        "stream": KeepAliveConfig().stream,
        "json": KeepAliveConfig().json,
    }
