"""What is learned of the rows of earlier days, and that nothing counts twice."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import cast

import msgspec
import pytest
from twisted.logger import ILogObserver, LogEvent, globalLogPublisher
from typing_extensions import override

from llamaswap import seeding
from llamaswap.activity.journal import GATHER, Journal
from llamaswap.activity.record import Activity
from llamaswap.activity.store import ActivityStore
from llamaswap.config.model import Config, ModelConfig, SchedulerConfig, SchedulerName
from llamaswap.scheduling.estimates import Estimates
from llamaswap.scheduling.sketches import WINDOW
from llamaswap.seeding import ENOUGH_LOADS, FARTHEST, STEP, Seeding
from support.activity_rows import ListeningClock, Ready, WeakStore, add_all, visit
from support.traces import dispatched, row

SERIAL, FIFO = SchedulerName.SERIAL, SchedulerName.FIFO
TIMES = {"serial_priority": "0", "serial_queue_wait_ms": "0", "serial_load_ms": "0"}


def config(*models: str, use: SchedulerName = SERIAL, path: str | None = "activity.db") -> Config:
    """A configuration with these models; the rows are said to be in a file."""
    return Config(
        models={name: ModelConfig(id=name) for name in models},
        scheduler=SchedulerConfig(use=use),
        store_path=path,
    )


class Looked(ActivityStore):
    """A store in a file that remembers which rows were looked at, and for whom."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), 0)
        self.looks: list[tuple[set[str], range]] = []

    @override
    def good_rows(self, models: Collection[str], ids: range, noted: str) -> list[tuple[str, str, float, str]]:
        """Answer, and remember the question."""
        self.looks.append((set(models), ids))
        return super().good_rows(models, ids, noted)


class Desk:
    """A journal with a past, the estimates, and what was said."""

    def __init__(self, folder: Path) -> None:
        self.clock = ListeningClock()
        self.store: ActivityStore = Looked(folder / "activity.db")
        self.journal = Journal(lambda: self.store, self.clock)
        self.estimates = Estimates()
        self.seeding = Seeding(self.estimates)
        self.said: list[LogEvent] = []

    def starts(self, *past: Activity) -> None:
        """The daemon starts when these rows are there."""
        add_all(self.store, past)
        self.journal.start()

    def learns(self, config_: Config) -> None:
        """What there is to learn is learned."""
        self.seeding.begin(config_, self.journal)
        self.settles()

    def settles(self) -> None:
        """What goes on comes to its end."""
        self.clock.listen_until(lambda: not self.seeding._chores._running)

    def runs(self, model: str = "a") -> tuple[int, float]:
        """How many runs are known, and how long most of them took."""
        run = self.estimates.run(model)
        return (0, 0.0) if run is None else (run.count, round(run.p50))

    def loads(self, model: str = "a") -> tuple[int, float]:
        """The same for loads."""
        load = self.estimates.load(model)
        return (0, 0.0) if load is None else (load.count, round(load.p50))

    @property
    def looks(self) -> list[tuple[set[str], range]]:
        """Each question to the store: for which models, among which ids."""
        return cast("Looked", self.store).looks

    @property
    def events(self) -> list[str]:
        """What was said, as people read it."""
        return [str(event["log_format"]).format(**event) for event in self.said]


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path)
    observer = cast("ILogObserver", desk.said.append)
    globalLogPublisher.addObserver(observer)
    yield desk
    globalLogPublisher.removeObserver(observer)
    assert not [event for event in desk.said if event["log_level"].name == "critical"]
    desk.clock.answer(desk.journal.close())


def job(model: str = "a", run: float = 10.0, load: float = 0.0) -> Activity:
    """A row of somebody who waited for seven seconds, then for a load, and then had the model."""
    return dispatched(1000, model, 7 + load + run, waited=7, load=load)


def test_runs_are_what_was_neither_waiting_nor_load_and_a_load_that_was_none_does_not_count(
    desk: Desk,
) -> None:
    desk.starts(job(run=10, load=4), job(run=10), job("b", run=60), job("gone", run=5))

    desk.learns(config("a", "b", "c"))

    assert (desk.runs("a"), desk.loads("a")) == ((2, 10), (1, 4))
    assert (desk.runs("b"), desk.loads("b")) == ((1, 60), (0, 0))
    assert desk.estimates.run("gone") is desk.estimates.run("c") is None
    assert desk.events == ["estimates.seeded models=2 runs=3"]


def test_of_calls_that_only_count_the_load_counts_alone(desk: Desk) -> None:
    counted = msgspec.structs.replace(job(run=0.01, load=4), req_path="/v1/messages/count_tokens")
    desk.starts(counted, counted, job(run=10))

    desk.learns(config("a"))

    assert (desk.runs("a"), desk.loads("a")) == ((1, 10), (2, 4))


@pytest.mark.parametrize(
    "poor",
    [
        visit("a", duration_ms=99_000, error_msg="broke off", metadata=dict(TIMES)),
        visit("a", duration_ms=99_000, status=500, metadata=dict(TIMES)),
        row(1000, "a", 99, status=499, serial_priority=0, serial_queue_wait_ms=99_000),
        row(1000, "a", 99, fifo_priority=0),
        row(1000, "a", 99),
        row(1000, "a", 99, serial_priority=0, serial_queue_wait_ms="soon", serial_load_ms=0),
    ],
    ids=["broken off", "failed", "left", "fifo", "of llama-swap", "nonsense"],
)
def test_rows_that_do_not_tell_how_long_a_job_took_are_left_out(desk: Desk, poor: Activity) -> None:
    desk.starts(poor)

    desk.learns(config("a"))

    assert desk.estimates.run("a") is desk.estimates.load("a") is None
    assert desk.events == ["estimates.not_seeded why=no row tells anything new"]
    assert [event["log_level"].name for event in desk.said] == ["debug"]


def test_the_newest_count_and_no_more_of_them_than_stay_together(desk: Desk) -> None:
    desk.starts(*[job(run=99)] * 300, *[job(run=10)] * WINDOW)

    desk.learns(config("a"))

    assert desk.runs() == (WINDOW, 10)


def test_what_comes_while_the_past_is_read_counts_once_and_outlives_the_past(desk: Desk) -> None:
    desk.starts(*[job(run=10, load=3)] * WINDOW)

    desk.seeding.begin(config("a"), desk.journal)
    for _ in range(40):
        desk.journal.leave(Ready(job(run=50, load=9)))
        desk.estimates.ran("a", 50.0)
    desk.estimates.loaded("a", 9.0)
    desk.clock.advance(GATHER)
    desk.settles()

    assert (desk.runs(), desk.loads()) == ((WINDOW, 10), (WINDOW, 3))
    known = desk.estimates.runs("a")
    assert known is not None
    assert known.beyond(20.0).count == 40
    for _ in range(WINDOW):
        desk.estimates.ran("a", 50.0)
    assert (desk.estimates.runs("a") or known).count == 2 * WINDOW


def test_a_past_that_comes_too_late_changes_nothing(desk: Desk) -> None:
    desk.starts(*[job(run=10)] * 5)

    desk.seeding.begin(config("a"), desk.journal)
    for _ in range(WINDOW):
        desk.estimates.ran("a", 50.0)
    desk.settles()

    assert desk.runs() == (WINDOW, 50)
    assert desk.events == ["estimates.not_seeded why=no row tells anything new"]


def test_it_looks_back_bit_by_bit_only_for_those_of_whom_too_little_is_known_and_not_for_ever(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seeding, "STEP", 300)
    monkeypatch.setattr(seeding, "FARTHEST", 900)
    rare = [job("rare", run=1)] * 100
    desk.starts(*rare, *[job("a")] * 600, *[job("a", load=5)] * ENOUGH_LOADS, *[job("a")] * 280)

    desk.learns(config("a", "rare", "never"))

    everybody, others = {"a", "rare", "never"}, {"rare", "never"}
    assert desk.looks == [
        (everybody, range(701, 1001)),
        (others, range(401, 701)),
        (others, range(101, 401)),
    ]
    assert (desk.runs("a"), desk.runs("rare")) == ((WINDOW, 10), (0, 0))


def test_it_stops_when_enough_is_known_of_everybody(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeding, "STEP", WINDOW)
    desk.starts(*[job(load=5)] * (2 * WINDOW))

    desk.learns(config("a"))

    assert [ids for _, ids in desk.looks] == [range(WINDOW + 1, 2 * WINDOW + 1)]


def test_the_last_step_ends_where_it_should() -> None:
    assert FARTHEST % STEP == 0


def test_an_empty_store_teaches_nothing(desk: Desk) -> None:
    desk.starts()

    desk.learns(config("a"))

    assert desk.looks == []
    assert desk.events == ["estimates.not_seeded why=no row tells anything new"]


def test_under_fifo_nobody_asks(desk: Desk) -> None:
    desk.starts(job())

    desk.learns(config("a", use=FIFO))

    assert (desk.looks, desk.said) == ([], [])


def test_rows_in_memory_are_not_asked(desk: Desk) -> None:
    desk.starts(job())

    desk.learns(config("a", path=None))

    assert desk.looks == []
    assert desk.events == ["estimates.not_seeded why=rows are kept in memory only"]


def fails(desk: Desk) -> None:
    """The store fails when it is asked."""
    store = WeakStore()
    store.close()
    desk.store.close()
    desk.store = store


def is_closed(desk: Desk) -> None:
    """The daemon stops at once."""
    desk.clock.answer(desk.journal.close())


@pytest.mark.parametrize(
    ("trouble", "why"),
    [(fails, "Cannot operate on a closed database."), (is_closed, "the activity journal is closed")],
)
def test_a_store_that_does_not_answer_is_a_line_for_the_curious(
    desk: Desk, trouble: Callable[[Desk], None], why: str
) -> None:
    if trouble is fails:
        fails(desk)
        desk.journal.start()
    else:
        desk.starts(job())
        is_closed(desk)

    desk.learns(config("a"))

    mine = [event for event in desk.said if str(event["log_format"]).startswith("estimates.")]
    assert [(event["log_level"].name, event["why"]) for event in mine] == [("debug", why)]
    assert desk.estimates.run("a") is None


# Under another configuration.


def test_after_a_reload_only_models_that_are_new_are_asked_about(desk: Desk) -> None:
    desk.starts(job("a"), job("b"))
    desk.learns(config("a"))

    desk.learns(config("a", "b"))
    desk.learns(config("a", "b"))

    assert [models for models, _ in desk.looks] == [{"a"}, {"b"}]
    assert (desk.runs("a"), desk.runs("b")) == ((1, 10), (1, 10))


def test_a_model_that_was_forgotten_is_learned_anew(desk: Desk) -> None:
    desk.starts(job("a"))
    desk.learns(config("a"))
    desk.learns(config("b"))
    desk.estimates.keep({"b"})

    desk.learns(config("a", "b"))

    assert desk.runs("a") == (1, 10)


def test_a_model_that_goes_while_its_past_is_read_is_not_remembered(desk: Desk) -> None:
    desk.starts(job("a"), job("b"))

    desk.seeding.begin(config("a", "b"), desk.journal)
    desk.seeding.begin(config("b"), desk.journal)
    desk.settles()

    assert (desk.runs("a"), desk.runs("b")) == ((0, 0), (1, 10))


def test_serial_learns_when_it_comes_and_not_again_when_it_comes_back(desk: Desk) -> None:
    desk.starts(job("a"))
    for use in (FIFO, SERIAL, FIFO, SERIAL):
        desk.learns(config("a", use=use))

    assert desk.runs("a") == (1, 10)
    assert len(desk.looks) == 1


def test_what_was_measured_while_rows_were_in_memory_is_not_asked_of_a_file(desk: Desk) -> None:
    desk.starts()
    desk.learns(config("a", path=None))
    desk.estimates.ran("a", 10.0)
    add_all(desk.store, [job("a")])  # a row that the journal of before has handed over

    desk.learns(config("a"))

    assert desk.runs("a") == (1, 10)
