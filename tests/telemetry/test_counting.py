from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from llamaswap.telemetry.counting import Counts, Histograms

BOUNDS = (0.01, 0.1, 1, 5, 3600)
AMOUNTS = st.one_of(st.sampled_from(BOUNDS), st.floats(0, 1e6))


class _Asked(Collector):
    """Hands one metric over."""

    def __init__(self, *metrics: Metric) -> None:
        self._metrics = metrics

    @override
    def collect(self) -> tuple[Metric, ...]:
        return self._metrics


def printed(*metrics: Metric) -> str:
    registry = CollectorRegistry()
    registry.register(_Asked(*metrics))
    return generate_latest(registry).decode()


def without_births(text: str) -> str:
    """Leave out when each counter was made."""
    return "".join(line for line in text.splitlines(keepends=True) if "_created" not in line)


@given(st.lists(st.tuples(st.sampled_from(["a", 'b"\n', "c\\"]), st.sampled_from(["200", "404"]))))
def test_counts_are_printed_as_prometheus_own_are(counted: list[tuple[str, str]]) -> None:
    registry = CollectorRegistry()
    theirs = Counter("requests_total", "Some words.", ["model", "code"], registry=registry)
    ours = Counts("requests_total", "Some words.", ["model", "code"])
    for values in counted:
        theirs.labels(*values).inc()
        ours.add(*values)

    assert printed(ours.metric()) == without_births(generate_latest(registry).decode())


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), AMOUNTS)))
def test_histograms_are_printed_as_prometheus_own_are(seen: list[tuple[str, float]]) -> None:
    registry = CollectorRegistry()
    theirs = Histogram("wait_seconds", "Some words.", ["band"], buckets=BOUNDS, registry=registry)
    ours = Histograms("wait_seconds", "Some words.", "band", BOUNDS)
    theirs.labels("b")
    ours.show("b")
    for value, amount in seen:
        theirs.labels(value).observe(amount)
        ours.observe(value, amount)

    assert printed(ours.metric()) == without_births(generate_latest(registry).decode())


def test_what_is_shown_is_a_zero_and_what_was_counted_stays() -> None:
    counts = Counts("x_total", "Words.", ["model"])
    counts.show("a")
    assert 'x_total{model="a"} 0.0' in printed(counts.metric())

    counts.add("a")
    counts.show("a")
    assert 'x_total{model="a"} 1.0' in printed(counts.metric())


def test_a_counter_without_labels_has_none() -> None:
    counts = Counts("x_total", "Words.")
    counts.add()

    assert "x_total 1.0" in printed(counts.metric())
