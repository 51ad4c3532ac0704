"""Every scheduler can be asked and told all that the dispatcher may ask and tell."""

from __future__ import annotations

import inspect

import pytest

from llamaswap.scheduling.fifo import FifoScheduler
from llamaswap.scheduling.protocol import Scheduler
from llamaswap.scheduling.serial import SerialScheduler

METHODS = [name for name, value in vars(Scheduler).items() if inspect.isfunction(value) and name[0] != "_"]


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("scheduler", [SerialScheduler, FifoScheduler])
def test_each_method_takes_what_the_protocol_says(scheduler: type, name: str) -> None:
    asked, taken = (inspect.signature(getattr(of, name)).parameters for of in (Scheduler, scheduler))

    assert [(each.name, each.default, each.kind) for each in asked.values()] == [
        (each.name, each.default, each.kind) for each in taken.values()
    ]


@pytest.mark.parametrize("scheduler", [SerialScheduler, FifoScheduler])
def test_each_says_which_bands_are_paused_and_who_may_pass(scheduler: type) -> None:
    assert isinstance(scheduler.paused, property)  # type: ignore[attr-defined]  # the point of the test
    assert isinstance(scheduler.bypass_when_resident, bool)  # type: ignore[attr-defined]  # likewise
