"""What `/metrics` shows, name by name."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from typing_extensions import override

import llamaswap
from llamaswap.leases import DispatchObserver
from llamaswap.scheduling.vocabulary import Band, Term
from llamaswap.telemetry.metrics import LIMITS
from support.telemetry_scrape import Scrape, verdict

BANDS = ("interactive", "normal", "batch")


@pytest.mark.parametrize("band", BANDS)
@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("llamaswap_scheduler_queue_depth", {}),
        ("llamaswap_scheduler_queue_oldest_wait_seconds", {}),
        ("llamaswap_scheduler_dispatched_total", {}),
        ("llamaswap_scheduler_reorders_total", {"term": "aging"}),
        ("llamaswap_scheduler_reorders_total", {"term": "swap_affinity"}),
        ("llamaswap_scheduler_reorders_total", {"term": "swap_budget"}),
        ("llamaswap_scheduler_bounded_total", {"reason": "queue_full"}),
        ("llamaswap_scheduler_bounded_total", {"reason": "hopeless"}),
        ("llamaswap_scheduler_bounded_total", {"reason": "deadline"}),
        ("llamaswap_scheduler_eta_error_seconds_count", {}),
        ("llamaswap_scheduler_paused", {}),
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
    assert scrape.by("reason", "llamaswap_swaps_by_reason_total") == {"request": 0, "preload": 0, "revive": 0}
    assert scrape.by("state", "llamaswap_box_seconds_total") == {"run": 0, "load": 0, "idle": 0}
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
    assert types["llamaswap_scheduler_eta_error_seconds"] == "histogram"
    assert types["llamaswap_scheduler_paused"] == "gauge"
    assert types["llamaswap_box_seconds_total"] == "counter"
    assert all(name.startswith("llamaswap_") for name in types)


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


def test_a_load_counts_for_what_it_was_begun_for() -> None:
    scrape = Scrape()

    scrape.metrics.swap("a", "request")
    scrape.metrics.swap("b", "request")
    scrape.metrics.swap("a", "revive")

    assert scrape.by("reason", "llamaswap_swaps_by_reason_total") == {"request": 2, "preload": 0, "revive": 1}


def test_who_was_turned_away_counts_in_his_band_with_the_reason() -> None:
    scrape = Scrape()

    scrape.metrics.bounded(Band.BATCH, "queue_full")
    scrape.metrics.bounded(Band.BATCH, "deadline")
    scrape.metrics.bounded(Band.NORMAL, "hopeless")

    name = "llamaswap_scheduler_bounded_total"
    assert scrape.by("reason", name, band="batch") == {"queue_full": 1, "hopeless": 0, "deadline": 1}
    assert scrape.by("reason", name, band="normal") == {"queue_full": 0, "hopeless": 1, "deadline": 0}
    assert scrape.by("reason", name, band="interactive") == {"queue_full": 0, "hopeless": 0, "deadline": 0}


def test_the_error_of_a_forecast_falls_into_its_bucket() -> None:
    scrape = Scrape()

    scrape.metrics.eta_missed(Band.NORMAL, 3.0)
    scrape.metrics.eta_missed(Band.NORMAL, 40.0)

    buckets = scrape.by("le", "llamaswap_scheduler_eta_error_seconds_bucket", band="normal")
    assert (buckets["2.5"], buckets["5.0"], buckets["60.0"], buckets["+Inf"]) == (0, 1, 2, 2)
    assert scrape.value("llamaswap_scheduler_eta_error_seconds_sum", band="normal") == 43.0


def test_the_time_of_the_box_counts_up_to_the_moment_of_the_scrape() -> None:
    scrape = Scrape()
    scrape.now = 5.0
    scrape.metrics.box("load", 5.0)
    scrape.now = 7.0
    scrape.metrics.box("run", 7.0)
    scrape.now = 10.0
    assert scrape.by("state", "llamaswap_box_seconds_total") == {"run": 3, "load": 2, "idle": 5}

    scrape.now = 11.0
    assert scrape.by("state", "llamaswap_box_seconds_total") == {"run": 4, "load": 2, "idle": 5}


def test_metrics_are_what_a_dispatcher_tells() -> None:
    observer: DispatchObserver = Scrape().metrics

    observer.box("run", 0.0)


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
    scrape.metrics.bounded(Band.BATCH, "deadline")
    scrape.metrics.box("run", 0.0)
    scrape.now = 2.0

    scrape.metrics.know(["b", "c"])
    scrape.metrics.answered("a", 200)
    scrape.metrics.answered("c", 200)

    assert scrape.value("llamaswap_swaps_total", model="a") == 1
    assert scrape.value("llamaswap_swaps_total", model="c") == 0
    assert scrape.value("llamaswap_model_load_seconds_count", model="c") == 0
    assert scrape.value("llamaswap_requests_total", model="b", code="200") == 1
    assert scrape.value("llamaswap_requests_total", model="c", code="200") == 1
    assert scrape.value("llamaswap_requests_total", model="unknown", code="200") == 1
    assert scrape.value("llamaswap_scheduler_bounded_total", band="batch", reason="deadline") == 1
    assert scrape.value("llamaswap_box_seconds_total", state="run") == 2


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
