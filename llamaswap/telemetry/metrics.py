"""Every metric of the daemon, in Prometheus' text format.

One registry per service; nothing is global.  Labels never take a value that a
caller chose: bands are three, models are those of the configuration.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import get_args

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from typing_extensions import override

import llamaswap
from llamaswap.leases import Bounded, SwapReason
from llamaswap.scheduling.vocabulary import Band, QueueView, Term, Verdict
from llamaswap.telemetry.busy import BoxTime
from llamaswap.telemetry.counting import Counts, Histograms
from llamaswap.telemetry.gauges import Gauges

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"

WAIT_BUCKETS = (0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600)  # seconds
ERROR_BUCKETS = (0.1, 0.5, 1, 2.5, 5, 15, 60, 300, 900, 3600, 4 * 3600)  # seconds
LOAD_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600)  # seconds

LIMITS = ("connections", "waiting", "requestBody", "heldBodies", "readers")
"""The keys below `limits` for which somebody can be turned away."""


class Metrics(Collector):
    """The counters of one service, and how they are printed.

    Args:
        view: the scheduler's snapshot, at scrape time.
        states: model id to state, at scrape time.
        models: every model id of the configuration; only these become labels.
        seconds: of a monotonic clock, for the time of the box; without one that stands still.

    Attributes:
        box: to be told each state that the box comes into, and when.
    """

    def __init__(
        self,
        view: Callable[[], QueueView],
        states: Callable[[], Mapping[str, str]],
        models: Iterable[str],
        seconds: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._models = frozenset(models)
        self._seconds = seconds
        self._box = BoxTime(seconds())
        self.box = self._box.turned
        # In the order in which they are printed.
        self._counted: list[Counts | Histograms] = []
        self._count_queue()
        self._count_models()
        self._limits = self._counts(
            "llamaswap_limits_reached_total",
            "Refusals because of a limit; of connections, how often newcomers had to wait.",
            "limit",
        )
        self._show_zeros()
        self._registry = CollectorRegistry()
        self._registry.register(Gauges(view, states))
        self._registry.register(self)

    @override
    def collect(self) -> Iterable[Metric]:
        """Return what has been counted; asked by the registry."""
        for counter in self._counted:
            yield counter.metric()
        box = CounterMetricFamily(
            "llamaswap_box_seconds_total",
            "Time in which the box ran jobs, only loaded, or did neither.",
            labels=["state"],
        )
        for state, spent in self._box.seconds(self._seconds()).items():
            box.add_metric([state], spent)
        yield box
        versions = [llamaswap.__version__, platform.python_version()]
        build = GaugeMetricFamily(
            "llamaswap_build_info", "1, with the versions as labels.", labels=["version", "python"]
        )
        build.add_metric(versions, 1)
        yield build

    def _count_queue(self) -> None:
        """Begin to count what happens to those who wait."""
        self._dispatched = self._counts(
            "llamaswap_scheduler_dispatched_total", "Requests dispatched.", "band"
        )
        self._reorders = self._counts(
            "llamaswap_scheduler_reorders_total",
            "Dispatches in which the term changed which request went next.",
            "band",
            "term",
        )
        self._abandoned = self._counts(
            "llamaswap_scheduler_abandoned_total", "Requests whose client left while they waited.", "band"
        )
        self._waits = self._histograms(
            "llamaswap_scheduler_queue_wait_seconds",
            "From arrival to dispatch, the load not included.",
            "band",
            WAIT_BUCKETS,
        )
        self._errors = self._histograms(
            "llamaswap_scheduler_eta_error_seconds",
            "How far a forecast of the wait was from the wait, either way; of a sample of the requests.",
            "band",
            ERROR_BUCKETS,
        )
        self._bounded = self._counts(
            "llamaswap_scheduler_bounded_total",
            "Requests turned away because of `maxQueue`, `maxWait` or the wait that they had asked for.",
            "band",
            "reason",
        )
        self._unparseable = self._counts(
            "llamaswap_scheduler_unparseable_priorities_total",
            "Priority headers that meant nothing and counted as 0.",
        )

    def _count_models(self) -> None:
        """Begin to count loads, and what models were asked."""
        self._loads = self._histograms(
            "llamaswap_model_load_seconds",
            "From the start of a model's load to its first healthy answer, evictions included.",
            "model",
            LOAD_BUCKETS,
        )
        self._swaps = self._counts(
            "llamaswap_swaps_total", "Loads begun because a request needed them.", "model"
        )
        self._reasons = self._counts(
            "llamaswap_swaps_by_reason_total", "Loads begun, by what they were begun for.", "reason"
        )
        self._requests = self._counts(
            "llamaswap_requests_total", "Inference requests answered.", "model", "code"
        )

    def _counts(self, name: str, words: str, *labels: str) -> Counts:
        counts = Counts(name, words, labels)
        self._counted.append(counts)
        return counts

    def _histograms(self, name: str, words: str, label: str, bounds: Sequence[float]) -> Histograms:
        histograms = Histograms(name, words, label, bounds)
        self._counted.append(histograms)
        return histograms

    def _show_zeros(self) -> None:
        """Make every band visible before anything happened: a gap in a graph is not a zero."""
        self._unparseable.show()
        for band in Band:
            self._dispatched.show(band.value)
            self._abandoned.show(band.value)
            self._waits.show(band.value)
            self._errors.show(band.value)
            for term in Term:
                self._reorders.show(band.value, term.value)
            for bound in get_args(Bounded):
                self._bounded.show(band.value, bound)
        for reason in get_args(SwapReason):
            self._reasons.show(reason)
        for limit in LIMITS:
            self._limits.show(limit)
        for model in self._models:
            self._loads.show(model)
            self._swaps.show(model)

    def know(self, models: Iterable[str]) -> None:
        """Count for these models from now on; what was counted for others stays."""
        self._models = frozenset(models)
        self._show_zeros()

    def watch(self, collector: Collector) -> None:
        """Print what another collector knows, too."""
        self._registry.register(collector)

    def dispatched(self, verdict: Verdict) -> None:
        """Count a dispatch, and the terms that changed the pick."""
        band = verdict.band  # a string itself, and its `value` would cost two calls
        self._dispatched.add(band)
        self._waits.observe(band, verdict.waited)
        for term in verdict.changed_by:
            self._reorders.add(band, term.value)

    def abandoned(self, band: Band) -> None:
        """Count a client that left while its request waited."""
        self._abandoned.add(band.value)

    def priority_unparseable(self) -> None:
        """Count a priority header that meant nothing."""
        self._unparseable.add()

    def load_began(self, model: str) -> None:
        """Count a swap to this model."""
        self._swaps.add(model)

    def load_ended(self, model: str, seconds: float) -> None:
        """Record a load that made its model ready."""
        self._loads.observe(model, seconds)

    def swap(self, model: str, reason: SwapReason) -> None:
        """Count what a load was begun for."""
        self._reasons.add(reason)

    def bounded(self, band: Band, reason: Bounded) -> None:
        """Count a request that was turned away because it would wait, or had waited, too long."""
        self._bounded.add(band.value, reason)

    def eta_missed(self, band: Band, seconds: float) -> None:
        """Record how far a forecast was from the wait; seconds, never negative."""
        self._errors.observe(band.value, seconds)

    def answered(self, model: str, status: int) -> None:
        """Count an inference request; a name that is no model counts as 'unknown'."""
        self._requests.add(model if model in self._models else "unknown", str(status))

    def limit_reached(self, limit: str) -> None:
        """Count somebody who was turned away because of a limit, one of `LIMITS`."""
        self._limits.add(limit)

    def render(self) -> bytes:
        """Return the text that `GET /metrics` answers."""
        return generate_latest(self._registry)
