"""What is true of queue and models only at the moment at which it is asked for.

Knows how it is printed; the scheduler and the servers are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from llamaswap.scheduling.vocabulary import Band, QueueView

MODEL_STATES: Final = ("stopped", "starting", "ready", "stopping")


class Gauges(Collector):
    """Prints the queue and the states of the models.

    Args:
        view: the scheduler's snapshot, at scrape time.
        states: model id to state, at scrape time.
    """

    def __init__(self, view: Callable[[], QueueView], states: Callable[[], Mapping[str, str]]) -> None:
        self._view = view
        self._states = states

    @override
    def collect(self) -> Iterable[Metric]:
        """Return what is true now; asked by the registry."""
        yield from _queue(self._view())
        state = GaugeMetricFamily(
            "llamaswap_model_state",
            "1 for the state that the model's process is in.",
            labels=["model", "state"],
        )
        for model, now in self._states().items():
            for name in MODEL_STATES:
                state.add_metric([model, name], float(name == now))
        yield state


def _queue(view: QueueView) -> Iterable[Metric]:
    depth = GaugeMetricFamily("llamaswap_scheduler_queue_depth", "Requests waiting now.", labels=["band"])
    oldest = GaugeMetricFamily(
        "llamaswap_scheduler_queue_oldest_wait_seconds",
        "How long the longest-waiting request has waited; 0 when none waits.",
        labels=["band"],
    )
    paused = GaugeMetricFamily(
        "llamaswap_scheduler_paused", "1 while nobody of the band is dispatched.", labels=["band"]
    )
    for band in Band:
        depth.add_metric([band.value], view.bands[band].depth)
        oldest.add_metric([band.value], view.bands[band].oldest_wait)
        paused.add_metric([band.value], float(band in view.paused))
    return depth, oldest, paused
