"""What `/metrics` shows, name by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import pytest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from typing_extensions import override

import llamaswap
from llamaswap.scheduling.vocabulary import Band, BandView, QueueView, Term, Verdict
from llamaswap.telemetry.metrics import LIMITS, Metrics

EMPTY = BandView(depth=0, oldest_wait=0.0)
BANDS = ("interactive", "normal", "batch")


class Scrape:
    """Metrics of two models, with whatever a test lets happen."""

    def __init__(self) -> None:
        self.bands: dict[Band, BandView] = dict.fromkeys(Band, EMPTY)
        self.states: dict[str, str] = {"a": "stopped", "b": "stopped"}
        self.metrics = Metrics(self._view, self._states, ["a", "b"])

    def _view(self) -> QueueView:
        return QueueView(bands=self.bands, jobs=())

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


def verdict(band: Band, waited: float = 0.0, *terms: Term) -> Verdict:
    """A verdict of this band."""
    return Verdict(
        priority=0, band=band, waited_us=round(waited * 1e6), thousandths=0, changed_by=frozenset(terms)
    )


@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("llamaswap_scheduler_queue_depth", {}),
        ("llamaswap_scheduler_queue_oldest_wait_seconds", {}),
        ("llamaswap_scheduler_dispatched_total", {}),
        ("llamaswap_scheduler_reorders_total", {"term": "aging"}),
        ("llamaswap_scheduler_reorders_total", {"term": "swap_affinity"}),
        ("llamaswap_scheduler_abandoned_total", {}),
        ("llamaswap_scheduler_queue_wait_seconds_count", {}),
    ],
)
def test_every_band_is_there_from_the_start_and_zero(name: str, labels: dict[str, str], band: str) -> None:
    assert Scrape().value(name, band=band, **labels) == 0


def test_the_other_numbers_are_there_from_the_start_too() -> None:
    scrape = Scrape()

    assert scrape.value("llamaswap_scheduler_unparseable_priorities_total") == 0
    for model in ("a", "b"):
        assert scrape.value("llamaswap_swaps_total", model=model) == 0
        assert scrape.value("llamaswap_model_load_seconds_count", model=model) == 0
    versions = [labels for name, labels in scrape.samples() if name == "llamaswap_build_info"]
    assert [dict(labels)["version"] for labels in versions] == [llamaswap.__version__]


def test_each_metric_has_the_type_that_is_documented() -> None:
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", Scrape().metrics.render().decode(), re.MULTILINE))

    assert types["llamaswap_scheduler_queue_depth"] == "gauge"
    assert types["llamaswap_scheduler_queue_oldest_wait_seconds"] == "gauge"
    assert types["llamaswap_scheduler_dispatched_total"] == "counter"
    assert types["llamaswap_scheduler_reorders_total"] == "counter"
    assert types["llamaswap_scheduler_queue_wait_seconds"] == "histogram"
    assert types["llamaswap_model_load_seconds"] == "histogram"
    assert all(name.startswith("llamaswap_") for name in types)


def test_the_queue_is_what_it_is_at_scrape_time() -> None:
    scrape = Scrape()
    scrape.bands[Band.BATCH] = BandView(depth=3, oldest_wait=12.5)
    assert scrape.value("llamaswap_scheduler_queue_depth", band="batch") == 3
    assert scrape.value("llamaswap_scheduler_queue_oldest_wait_seconds", band="batch") == 12.5

    scrape.bands[Band.BATCH] = EMPTY
    assert scrape.value("llamaswap_scheduler_queue_depth", band="batch") == 0


def test_a_dispatch_counts_in_its_band_with_its_wait_and_the_terms_that_changed_it() -> None:
    scrape = Scrape()

    scrape.metrics.dispatched(verdict(Band.BATCH, 90.0, Term.AGING, Term.SWAP_AFFINITY))
    scrape.metrics.dispatched(verdict(Band.BATCH, 0.0))

    assert scrape.value("llamaswap_scheduler_dispatched_total", band="batch") == 2
    assert scrape.value("llamaswap_scheduler_dispatched_total", band="normal") == 0
    assert scrape.value("llamaswap_scheduler_reorders_total", band="batch", term="aging") == 1
    assert scrape.value("llamaswap_scheduler_reorders_total", band="batch", term="swap_affinity") == 1
    assert scrape.value("llamaswap_scheduler_queue_wait_seconds_sum", band="batch") == 90.0
    assert scrape.value("llamaswap_scheduler_queue_wait_seconds_bucket", band="batch", le="60.0") == 1


def test_loads_count_when_they_begin_and_last_until_they_are_ready() -> None:
    scrape = Scrape()

    scrape.metrics.load_began("a")
    scrape.metrics.load_began("a")
    scrape.metrics.load_ended("a", 2.0)

    assert scrape.value("llamaswap_swaps_total", model="a") == 2
    assert scrape.value("llamaswap_model_load_seconds_count", model="a") == 1
    assert scrape.value("llamaswap_model_load_seconds_sum", model="a") == 2.0


def test_the_rest_counts_one_by_one() -> None:
    scrape = Scrape()

    scrape.metrics.abandoned(Band.INTERACTIVE)
    scrape.metrics.priority_unparseable()
    scrape.metrics.answered("a", 200)

    assert scrape.value("llamaswap_scheduler_abandoned_total", band="interactive") == 1
    assert scrape.value("llamaswap_scheduler_unparseable_priorities_total") == 1
    assert scrape.value("llamaswap_requests_total", model="a", code="200") == 1


@pytest.mark.parametrize("state", ["stopped", "starting", "ready", "stopping"])
def test_a_model_is_in_exactly_one_state(state: str) -> None:
    scrape = Scrape()
    scrape.states["a"] = state

    shown = {
        dict(labels)["state"]: value
        for (name, labels), value in scrape.samples().items()
        if name == "llamaswap_model_state" and dict(labels)["model"] == "a"
    }

    assert len(shown) == 4
    assert [name for name, value in shown.items() if value] == [state]


def test_no_label_ever_holds_what_a_caller_chose() -> None:
    scrape = Scrape()
    before = len(scrape.samples())

    for number in range(100):
        scrape.metrics.answered(f"model-{number}", 404)

    # One counter and the moment at which it came to be.
    assert len(scrape.samples()) - before <= 2
    assert scrape.value("llamaswap_requests_total", model="unknown", code="404") == 100


def test_two_services_in_one_process_share_no_number() -> None:
    first, second = Scrape(), Scrape()

    first.metrics.priority_unparseable()

    assert second.value("llamaswap_scheduler_unparseable_priorities_total") == 0


def test_after_a_reload_new_models_are_counted_and_what_was_counted_stays() -> None:
    scrape = Scrape()
    scrape.metrics.load_began("a")
    scrape.metrics.answered("b", 200)

    scrape.metrics.know(["b", "c"])
    scrape.metrics.answered("a", 200)
    scrape.metrics.answered("c", 200)

    assert scrape.value("llamaswap_swaps_total", model="a") == 1
    assert scrape.value("llamaswap_swaps_total", model="c") == 0
    assert scrape.value("llamaswap_model_load_seconds_count", model="c") == 0
    assert scrape.value("llamaswap_requests_total", model="b", code="200") == 1
    assert scrape.value("llamaswap_requests_total", model="c", code="200") == 1
    assert scrape.value("llamaswap_requests_total", model="unknown", code="200") == 1


class Thermometer(Collector):
    """Somebody else's number."""

    @override
    def collect(self) -> Iterable[Metric]:
        """Make one sample."""
        yield GaugeMetricFamily("room_celsius", "How warm it is.", value=21.5)


def test_what_others_know_is_printed_too() -> None:
    scrape = Scrape()

    scrape.metrics.watch(Thermometer())

    assert scrape.value("room_celsius") == 21.5


def test_no_series_says_when_its_counter_was_made() -> None:
    scrape = Scrape()
    scrape.metrics.load_ended("a", 1.0)
    scrape.metrics.dispatched(verdict(Band.NORMAL))

    assert [name for name, _ in scrape.samples() if name.endswith("_created")] == []


def test_each_limit_is_there_from_the_start_and_counts_for_itself() -> None:
    scrape = Scrape()

    scrape.metrics.limit_reached("waiting")

    reached = {limit: scrape.value("llamaswap_limits_reached_total", limit=limit) for limit in LIMITS}
    assert reached == {"connections": 0, "waiting": 1, "requestBody": 0, "heldBodies": 0, "readers": 0}
