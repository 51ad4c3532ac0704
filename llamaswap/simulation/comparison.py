"""The same requests under several scenarios, side by side with `fifo`.

`fifo` is llama-swap's own algorithm.  It serves whoever wants the model that is
loaded before anybody else, for as long as such requests come: few swaps, and
no bound on how long the others wait.  How a table looks is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial

from llamaswap.scheduling.vocabulary import Band, Term
from llamaswap.simulation.arrivals import Arrival
from llamaswap.simulation.engine import simulate
from llamaswap.simulation.results import Results
from llamaswap.simulation.scenario import Scenario

Row = Mapping[str, str | int | float]
"""One scenario as flat cells, the same keys in the same order for each; seconds, counts and shares."""

Told = Callable[[str, int, int | None], None]
"""Progress: the scenario that is played, how many of its requests have ended, of how many."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What several scenarios did with the same requests; the first one is the baseline."""

    results: tuple[Results, ...]

    @property
    def baseline(self) -> Results:
        """What the others are compared with."""
        return self.results[0]

    def rows(self) -> tuple[Row, ...]:
        """Return a row for each scenario, the baseline first."""
        return tuple(row_of(results) for results in self.results)

    def ratios(self) -> tuple[Row, ...]:
        """Return the rows, each number as a multiple of the baseline's; left out where that is 0."""
        first, *_ = rows = self.rows()
        return tuple({"scenario": row["scenario"], **dict(_ratios(row, first))} for row in rows)


def compare(
    arrivals: Iterable[Arrival],
    scenarios: Sequence[Scenario],
    *,
    baseline: bool = True,
    progress: Told = lambda _name, _done, _total: None,
) -> Comparison:
    """Play the same requests under each scenario.

    Args:
        arrivals: walked once for each scenario; an iterator can be only once, and is kept in memory.
        scenarios: at least one; their names tell them apart.
        baseline: begin with `fifo` on the box of the first scenario, unless that is `fifo` itself.
        progress: called now and then.

    Raises:
        BadTrace: as `simulate`.
        ValueError: two scenarios have the same name, or there is none.
    """
    if isinstance(arrivals, Iterator):
        arrivals = tuple(arrivals)
    played = with_baseline(scenarios) if baseline else tuple(scenarios)
    names = [scenario.name for scenario in played]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"scenarios need names that tell them apart, not {names}")
    return Comparison(
        tuple(simulate(arrivals, scenario, progress=partial(progress, scenario.name)) for scenario in played)
    )


def with_baseline(scenarios: Sequence[Scenario]) -> tuple[Scenario, ...]:
    """Return these, `fifo` before them unless the first is it."""
    if not scenarios:
        return ()
    first = scenarios[0].baseline()
    return tuple(scenarios) if scenarios[0].name == first.name else (first, *scenarios)


def row_of(results: Results) -> Row:
    """Return the numbers of one run as flat cells: `interactive_p95`, `swaps`, `loading_share`."""
    row: dict[str, str | int | float] = {"scenario": results.scenario, "requests": results.requests}
    for band in Band:
        row |= {f"{band.value}_{name}": value for name, value in asdict(results.by_band[band]).items()}
        row[f"{band.value}_cancelled"] = results.cancelled[band]
        row[f"{band.value}_refused"] = results.refused[band]
    row |= {
        "loads": results.load_count,
        "swaps": results.swaps,
        "running": results.running,
        "loading": results.loading,
        "idle": results.idle,
        "makespan": results.makespan,
        "busy_share": results.busy_share,
        "loading_share": results.loading_share,
        "idle_share": results.idle_share,
    }
    for band in Band:
        for term in Term:
            row[f"{band.value}_reorders_{term.value}"] = results.reorders[band][term]
    return row


def _ratios(row: Row, first: Row) -> Iterator[tuple[str, float]]:
    for name, value in row.items():
        against = first[name]
        if not isinstance(value, str) and not isinstance(against, str) and against:
            yield name, value / against
