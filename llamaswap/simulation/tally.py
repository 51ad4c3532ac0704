"""Count what a simulated box does while it does it; one float for each request is all that stays.

Knows no scheduler and no clock: it is told.
"""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict

from llamaswap.scheduling.vocabulary import Band, Term, Ticket, Verdict, band_of
from llamaswap.simulation.results import Fate, Results, Waits, waits_of


class Tally:
    """Adds up one run of a trace."""

    def __init__(self) -> None:
        self.requests = 0
        self.running = 0.0  # seconds
        self.loading = 0.0
        self.idle = 0.0
        self._waits: defaultdict[tuple[str, Band], array[float]] = defaultdict(lambda: array("d"))
        self._cancelled: Counter[Band] = Counter()
        self._refused: Counter[Band] = Counter()
        self._loads: Counter[str] = Counter()
        self._swaps = 0
        self._reorders: Counter[tuple[Band, Term]] = Counter()

    def passed(self, seconds: float, *, runs: bool, loads: bool) -> None:
        """Time went by in which something ran, or only loaded, or nothing happened."""
        if runs:
            self.running += seconds
        elif loads:
            self.loading += seconds
        else:
            self.idle += seconds

    def dispatched(self, verdict: Verdict) -> None:
        """A request has left the queue."""
        for term in verdict.changed_by:
            self._reorders[verdict.band, term] += 1

    def began(self, ticket: Ticket, waited: float) -> None:
        """The run of a request begins after so many seconds."""
        self._waits[ticket.model, band_of(ticket.priority)].append(waited)

    def load_began(self, model: str, evicted: frozenset[str]) -> None:
        """A model loads."""
        self._loads[model] += 1
        if evicted:
            self._swaps += 1

    def ended(self, ticket: Ticket, fate: Fate) -> None:
        """A request is over."""
        if fate is Fate.CANCELLED:
            self._cancelled[band_of(ticket.priority)] += 1
        elif fate is Fate.REFUSED:
            self._refused[band_of(ticket.priority)] += 1

    def results(self, scenario: str) -> Results:
        """Return everything so far."""
        return Results(
            scenario=scenario,
            requests=self.requests,
            waits=waits_of(*self._waits.values()),
            by_band={band: self._waits_of_band(band) for band in Band},
            by_model={model: self._waits_of_model(model) for model in sorted({m for m, _ in self._waits})},
            cancelled={band: self._cancelled[band] for band in Band},
            refused={band: self._refused[band] for band in Band},
            loads=dict(sorted(self._loads.items())),
            swaps=self._swaps,
            running=self.running,
            loading=self.loading,
            idle=self.idle,
            makespan=self.running + self.loading + self.idle,
            reorders={band: {term: self._reorders[band, term] for term in Term} for band in Band},
        )

    def _waits_of_band(self, wanted: Band) -> Waits:
        return waits_of(*(waits for (_, band), waits in self._waits.items() if band is wanted))

    def _waits_of_model(self, wanted: str) -> Waits:
        return waits_of(*(waits for (model, _), waits in self._waits.items() if model == wanted))
