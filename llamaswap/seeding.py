"""What was measured before a restart, read from the rows of then: so the first forecasts need not wait.

Knows which rows tell how long a run or a load took, how many of them are worth reading, and that nothing may
count twice.  SQL and threads are the activity journal's business.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Final

from twisted.logger import Logger

from llamaswap.activity.journal import Journal, JournalClosed, StoreFailed
from llamaswap.activity.store import ActivityStore
from llamaswap.calls.call import only_counts
from llamaswap.chores import Chores
from llamaswap.config.model import Config, SchedulerName
from llamaswap.scheduling.estimates import Estimates
from llamaswap.scheduling.noted import QUEUE_WAIT, read
from llamaswap.scheduling.sketches import WINDOW, Distribution

FARTHEST: Final = 100_000  # rows to look back at, of all models: they are read in a tenth of a second
STEP: Final = 2000  # rows to look at in one go, in which no row can be written: a few milliseconds
ENOUGH_LOADS: Final = 20  # of one model; they are rare, and differ less than runs do


class Seeding:
    """Fills the estimates once for each model, when it is new; it is over when its journal is closed.

    Args:
        estimates: learn from it; the owner of the configuration has forgotten the models that are not in it.
    """

    _log = Logger()

    def __init__(self, estimates: Estimates) -> None:
        self._estimates = estimates
        self._chores = Chores()
        self._known: set[str] = set()  # models whose runs and loads are measured, under `serial`

    def begin(self, config: Config, journal: Journal) -> None:
        """Start to learn about the models that were not there before, from the rows that are stored by now.

        What is measured later is not among those rows, as long as this is called before anybody is served.
        Does nothing under `fifo`, and with rows in memory.
        """
        models = set(config.models)
        self._known &= models
        if config.scheduler.use is not SchedulerName.SERIAL:
            return
        new = models - self._known
        self._known |= new
        if config.store_path is None:
            self._log.debug("estimates.not_seeded why={why}", why="rows are kept in memory only")
        elif new:
            self._chores.start("seeding of estimates", self._learn(new, journal))

    async def _learn(self, models: Collection[str], journal: Journal) -> None:
        try:
            found = await _look_back(journal, models)
        except (StoreFailed, JournalClosed) as error:
            self._log.debug("estimates.not_seeded why={why}", why=str(error))
            return
        runs = [self._seed(model, past) for model, past in found.items() if model in self._known]
        if any(runs):
            seeded = sum(1 for many in runs if many)
            self._log.info("estimates.seeded models={models} runs={runs}", models=seeded, runs=sum(runs))
        else:
            self._log.debug("estimates.not_seeded why={why}", why="no row tells anything new")

    def _seed(self, model: str, past: _Past) -> int:
        """Let the past go before what was measured meanwhile; returns how many runs there was room for."""
        runs = _newest(past.runs, self._estimates.runs(model))
        self._estimates.seed(
            model, reversed(runs), reversed(_newest(past.loads, self._estimates.loads(model)))
        )
        return len(runs)


class _Past:
    """What was found out about one model, newest first; seconds."""

    __slots__ = ("loads", "runs")

    def __init__(self) -> None:
        self.runs: list[float] = []
        self.loads: list[float] = []

    @property
    def is_enough(self) -> bool:
        return len(self.runs) >= WINDOW and len(self.loads) >= ENOUGH_LOADS

    def add(self, run: float | None, load: float) -> None:
        if run is not None:
            self.runs.append(run)
        if load > 0:  # the model was there otherwise
            self.loads.append(load)


async def _look_back(journal: Journal, models: Collection[str]) -> dict[str, _Past]:
    found = {model: _Past() for model in models}
    # Whatever is stored from here on is of jobs that were measured when they ended.
    end = 1 + await journal.look(ActivityStore.newest)
    for stop in range(end, max(1, end - FARTHEST), -STEP):
        wanted = [model for model, past in found.items() if not past.is_enough]
        if not wanted:
            break
        ids = range(max(1, stop - STEP), stop)
        for model, run, load in await journal.look(partial(_times, models=wanted, ids=ids)):
            found[model].add(run, load)
    return found


def _times(
    store: ActivityStore, models: Collection[str], ids: range
) -> list[tuple[str, float | None, float]]:
    """Return model, run and load of each row that tells, newest first; seconds, None for no run.

    A call that only counts is no run, but its load is one.
    """
    rows = store.good_rows(models, ids, QUEUE_WAIT)
    told = [(model, path, lasted, read(metadata)) for model, path, lasted, metadata in rows]
    return [
        (model, None if only_counts(path) else noted.run(lasted), noted.load)
        for model, path, lasted, noted in told
        if noted.timed
    ]


def _newest(past: Sequence[float], known: Distribution | None) -> Sequence[float]:
    """Return as much of the past as fits into one window with what is known, so that neither goes first."""
    room = WINDOW - (0 if known is None else known.count)
    return past[: max(0, room)]
