"""Metrics of a service that only a test lets do something."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families

from llamaswap.scheduling.vocabulary import Band, BandView, QueueView, Term, Verdict
from llamaswap.telemetry.metrics import Metrics

EMPTY = BandView(depth=0, oldest_wait=0.0)


class Scrape:
    """Metrics of two models, `a` and `b`, with whatever a test lets happen."""

    def __init__(self) -> None:
        self.now = 0.0  # seconds
        self.bands: dict[Band, BandView] = dict.fromkeys(Band, EMPTY)
        self.paused: frozenset[Band] = frozenset()
        self.states: dict[str, str] = {"a": "stopped", "b": "stopped"}
        self.metrics = Metrics(self._view, self._states, ["a", "b"], lambda: self.now)

    def _view(self) -> QueueView:
        return QueueView(bands=self.bands, jobs=(), paused=self.paused)

    def _states(self) -> Mapping[str, str]:
        return self.states

    def samples(self) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
        """Every sample by name and labels."""
        families = text_string_to_metric_families(self.metrics.render().decode())
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in families
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float:
        """One sample."""
        return self.samples()[name, tuple(sorted(labels.items()))]

    def by(self, label: str, name: str, **labels: str) -> dict[str, float]:
        """The samples that have these other labels, by the value of one."""
        return {
            dict(pairs)[label]: value
            for (sample, pairs), value in self.samples().items()
            if sample == name and labels.items() <= dict(pairs).items()
        }


def verdict(band: Band, waited: float = 0.0, *terms: Term) -> Verdict:
    """A verdict of this band."""
    return Verdict(
        priority=0, band=band, waited_us=round(waited * 1e6), thousandths=0, changed_by=frozenset(terms)
    )
