"""Every metric of the daemon, in Prometheus' text format.

One registry per service; nothing is global.  Labels never take a value that a
caller chose: bands are three, models are those of the configuration.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from typing_extensions import override

import llamaswap
from llamaswap.scheduling.vocabulary import Band, QueueView, Term, Verdict

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"

WAIT_BUCKETS = (0.01, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600)  # seconds
LOAD_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60, 120, 300, 600)  # seconds


class _Queue(Collector):
    """The gauges that are true only at the moment they are asked for."""

    def __init__(self, view: Callable[[], QueueView], states: Callable[[], Mapping[str, str]]) -> None:
        self._view = view
        self._states = states

    @override
    def collect(self) -> Iterable[Metric]:
        bands = self._view().bands
        depth = GaugeMetricFamily("llamaswap_scheduler_queue_depth", "Requests waiting now.", labels=["band"])
        oldest = GaugeMetricFamily(
            "llamaswap_scheduler_queue_oldest_wait_seconds",
            "How long the longest-waiting request has waited; 0 when none waits.",
            labels=["band"],
        )
        for band in Band:
            depth.add_metric([band.value], bands[band].depth)
            oldest.add_metric([band.value], bands[band].oldest_wait)
        state = GaugeMetricFamily(
            "llamaswap_model_state",
            "1 for the state that the model's process is in.",
            labels=["model", "state"],
        )
        for model, now in self._states().items():
            for name in MODEL_STATES:
                state.add_metric([model, name], float(name == now))
        return depth, oldest, state


MODEL_STATES = ("stopped", "starting", "ready", "stopping")


class _Registry(CollectorRegistry):
    """Leaves out when each counter was made: that says when the daemon started, once per label."""

    @override
    def collect(self) -> Iterable[Metric]:
        for metric in super().collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric


class Metrics:
    """The counters of one service, and how they are printed.

    Args:
        view: the scheduler's snapshot, at scrape time.
        states: model id to state, at scrape time.
        models: every model id of the configuration; only these become labels.
    """

    def __init__(
        self,
        view: Callable[[], QueueView],
        states: Callable[[], Mapping[str, str]],
        models: Iterable[str],
    ) -> None:
        self._registry = registry = _Registry()
        registry.register(_Queue(view, states))
        self._models = frozenset(models)
        self._dispatched = Counter(
            "llamaswap_scheduler_dispatched_total", "Requests dispatched.", ["band"], registry=registry
        )
        self._reorders = Counter(
            "llamaswap_scheduler_reorders_total",
            "Dispatches in which the term changed which request went next.",
            ["band", "term"],
            registry=registry,
        )
        self._abandoned = Counter(
            "llamaswap_scheduler_abandoned_total",
            "Requests whose client left while they waited.",
            ["band"],
            registry=registry,
        )
        self._waits = Histogram(
            "llamaswap_scheduler_queue_wait_seconds",
            "From arrival to dispatch, the load not included.",
            ["band"],
            buckets=WAIT_BUCKETS,
            registry=registry,
        )
        self._unparseable = Counter(
            "llamaswap_scheduler_unparseable_priorities_total",
            "Priority headers that meant nothing and counted as 0.",
            registry=registry,
        )
        self._loads = Histogram(
            "llamaswap_model_load_seconds",
            "From the start of a model's load to its first healthy answer, evictions included.",
            ["model"],
            buckets=LOAD_BUCKETS,
            registry=registry,
        )
        self._swaps = Counter(
            "llamaswap_swaps_total",
            "Loads begun because a request needed them.",
            ["model"],
            registry=registry,
        )
        self._requests = Counter(
            "llamaswap_requests_total", "Inference requests answered.", ["model", "code"], registry=registry
        )
        self._show_zeros()
        build = Gauge(
            "llamaswap_build_info",
            "1, with the versions as labels.",
            ["version", "python"],
            registry=registry,
        )
        build.labels(llamaswap.__version__, platform.python_version()).set(1)

    def _show_zeros(self) -> None:
        """Make every band visible before anything happened: a gap in a graph is not a zero."""
        for band in Band:
            self._dispatched.labels(band.value)
            self._abandoned.labels(band.value)
            self._waits.labels(band.value)
            for term in Term:
                self._reorders.labels(band.value, term.value)
        for model in self._models:
            self._loads.labels(model)
            self._swaps.labels(model)

    def know(self, models: Iterable[str]) -> None:
        """Count for these models from now on; what was counted for others stays."""
        self._models = frozenset(models)
        self._show_zeros()

    def watch(self, collector: Collector) -> None:
        """Print what another collector knows, too."""
        self._registry.register(collector)

    def dispatched(self, verdict: Verdict) -> None:
        """Count a dispatch, and the terms that changed the pick."""
        band = verdict.band.value
        self._dispatched.labels(band).inc()
        self._waits.labels(band).observe(verdict.waited)
        for term in verdict.changed_by:
            self._reorders.labels(band, term.value).inc()

    def abandoned(self, band: Band) -> None:
        """Count a client that left while its request waited."""
        self._abandoned.labels(band.value).inc()

    def priority_unparseable(self) -> None:
        """Count a priority header that meant nothing."""
        self._unparseable.inc()

    def load_began(self, model: str) -> None:
        """Count a swap to this model."""
        self._swaps.labels(model).inc()

    def load_ended(self, model: str, seconds: float) -> None:
        """Record a load that made its model ready."""
        self._loads.labels(model).observe(seconds)

    def answered(self, model: str, status: int) -> None:
        """Count an inference request; a name that is no model counts as 'unknown'."""
        label = model if model in self._models else "unknown"
        self._requests.labels(label, str(status)).inc()

    def render(self) -> bytes:
        """Return the text that `GET /metrics` answers."""
        return generate_latest(self._registry)
