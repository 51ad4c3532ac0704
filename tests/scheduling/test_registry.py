"""What a configuration asks for is what it gets."""

from __future__ import annotations

from dataclasses import replace

from llamaswap.config.model import (
    CallerConfig,
    Config,
    GroupConfig,
    MatrixConfig,
    PrioritiesConfig,
    SchedulerConfig,
    SchedulerName,
    SerialSettings,
)
from llamaswap.scheduling.estimates import Estimates
from llamaswap.scheduling.fifo import FifoScheduler
from llamaswap.scheduling.forecast import Job
from llamaswap.scheduling.registry import make_planner, make_scheduler
from llamaswap.scheduling.serial import SerialScheduler
from llamaswap.scheduling.vocabulary import Dispatch, Facts, Load, Serve, Ticket
from support.scheduling_setup import models_named, rivals

BUSY = Facts(now=0.0, running=frozenset("A"), ready=frozenset("A"))


def config(scheduler: SchedulerConfig | None = None, groups: tuple[GroupConfig, ...] = ()) -> Config:
    return Config(
        models=models_named("AB"), groups=groups or rivals("AB"), scheduler=scheduler or SchedulerConfig()
    )


def ticket(number: int, model: str = "A", priority: int = 0) -> Ticket:
    return Ticket(number=number, model=model, priority=priority, arrived=0.0)


def test_without_a_word_it_is_fifo() -> None:
    assert isinstance(make_scheduler(config()), FifoScheduler)


def test_serial_comes_with_its_settings() -> None:
    settings = SerialSettings(aging_divisor=0.0, swap_affinity_bonus=3)
    scheduler = make_scheduler(config(SchedulerConfig(use=SchedulerName.SERIAL, serial=settings)))
    assert isinstance(scheduler, SerialScheduler)

    first = scheduler.arrived(ticket(1), BUSY)[0]

    assert isinstance(first, Dispatch)
    assert first.verdict.score == "3"


def test_fifo_comes_with_the_priorities_of_the_models() -> None:
    scheduler = make_scheduler(config(SchedulerConfig(fifo_priority={"A": 7})))

    first = scheduler.arrived(ticket(1, priority=-100), BUSY)[0]

    assert isinstance(first, Dispatch)
    assert first.verdict.metadata == {"fifo_priority": "-93"}


def test_only_serial_lets_those_pass_who_merely_look() -> None:
    assert make_scheduler(config(SchedulerConfig(use=SchedulerName.SERIAL))).bypass_when_resident
    assert not make_scheduler(config()).bypass_when_resident


def test_the_planner_knows_the_groups() -> None:
    apart = (GroupConfig(id="g", swap=False, members=("A", "B")),)

    assert make_planner(config())("B", frozenset("A")) == {"A"}
    assert make_planner(config(groups=apart))("B", frozenset("A")) == frozenset()


def test_the_planner_knows_the_matrix() -> None:
    matrix = MatrixConfig(sets=(("s", "A & B"),))
    asked = Config(models=models_named("ABC"), router="matrix", matrix=matrix)

    assert make_planner(asked)("B", frozenset("AC")) == {"C"}


def test_both_schedulers_ask_the_planner() -> None:
    for use in SchedulerName:
        decisions = make_scheduler(config(SchedulerConfig(use=use))).arrived(ticket(1, "B"), BUSY)
        assert list(decisions[1:]) == [Load("B", frozenset("A"))]


def test_each_scheduler_starts_with_an_empty_queue_of_its_own() -> None:
    asked = config(SchedulerConfig(use=SchedulerName.SERIAL))
    make_scheduler(asked).arrived(ticket(1), BUSY)

    decisions = make_scheduler(asked).arrived(ticket(2), BUSY)

    assert [type(decision) for decision in decisions] == [Dispatch, Serve]


def test_serial_goes_by_the_estimates_and_tells_of_the_largest_offset() -> None:
    estimates = Estimates()
    estimates.ran("A", 10.0)
    asked = config(SchedulerConfig(use=SchedulerName.SERIAL))
    callers = (CallerConfig(name="pro", offset=1), CallerConfig(name="max", offset=2))
    scheduler = make_scheduler(
        replace(asked, priorities=PrioritiesConfig(callers=callers)), estimates=estimates
    )
    job, late = ticket(1), ticket(2)
    scheduler.arrived(job, BUSY)
    scheduler.arrived(late, BUSY)

    eta = scheduler.eta(late, (Job(ticket=job, loading=False, since=0.0),), BUSY)
    bounds = scheduler.explain(late, BUSY).bounds

    assert eta is not None
    assert eta.p50 > 0
    assert [bound.priority for bound in bounds] == [2, 102]
