"""A real Prometheus reads a real daemon's metrics, and understands our rules and our dashboard."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from support.documents import ROOT
from support.field_nvml import Driver
from support.real_daemon import Daemon, started, stub_config
from support.real_daemon_talk import Wire, ask, chat_body, json_fields, request_bytes, until
from support.real_prometheus import ETC, Prometheus, Series, prometheus_of, promtool
from support.real_reload import reload
from support.telemetry_dashboard import queries

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"
CASES = ROOT / "tests/integration/prometheus-alerts-test.yaml"

STANDING = re.compile(r"llamaswap_(scheduler|model|swaps|requests|limits|build)_(?!queue_oldest_wait)")
"""What changes only when somebody does something."""

KEPT_FROM_LLAMA_SWAP = re.compile(r"llamaswap_(cpu|gpu)_\w*percent|llamaswap_cpu_util_percent")
"""Names that Prometheus' conventions would have otherwise: the dashboards of others ask for them."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A daemon that has done something of everything, and who has watched it."""

    daemon: Daemon
    prometheus: Prometheus
    folder: Path
    config: dict[str, Any]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("watched")
    config = stub_config(folder, "a", "b", words="--load 0.3", concurrencyLimit=0)
    config["hooks"] = {"on_startup": {"preload": ["a"]}}
    config["limits"] = {"requestBody": 20_000}
    serial = {"maxQueue": {"batch": 2}, "agingDivisor": 0.01}
    config["routing"]["scheduler"]["settings"] = {"serial": serial}
    with (
        started(folder, config, environ=Driver(folder, "ok").environ) as daemon,
        prometheus_of(daemon.port, folder) as prometheus,
    ):
        until(lambda: prometheus.query('up{job="llamaswap"}') == {("up", ()): 1}, "the first scrape")
        keep_busy(daemon)
        until(lambda: "llamaswap_gpu_power_draw_watts" in daemon.get("/metrics").body.decode(), "a sample")
        prometheus.wait_scrapes(3)
        yield Watched(daemon, prometheus, folder, config)


def keep_busy(daemon: Daemon) -> None:
    """Do something of everything that is counted."""
    until(lambda: daemon.running().get("a") == "ready", "the preload")
    for model in ("a", "a", "b", "a"):
        assert daemon.chat(model).status == 200
    assert daemon.chat("a", "rather soon").status == 200  # a priority that means nothing
    assert daemon.chat("nobody").status == 404
    assert daemon.chat("a", stub={"status": 500}).status == 500
    assert daemon.chat("a", more="x" * 30_000).status == 413
    with ThreadPoolExecutor(8) as pool, Wire(daemon.port) as job, Wire(daemon.port) as impatient:
        job.send(chat("a", stub={"tokens": 40, "gap": 0.05}))
        job.read_until(b'"n": 0')
        others = [pool.submit(daemon.chat, model, band) for model, band in (("b", "batch"), ("a", "batch"))]
        until(lambda: daemon.waiting() == 2, "two to wait")
        assert daemon.chat("a", "batch").status == 429
        others += [pool.submit(daemon.chat, model, "interactive") for model in ("b", "a")]
        until(lambda: daemon.waiting() == 4, "four to wait")
        impatient.send(chat("b"))
        until(lambda: daemon.waiting() == 5, "five to wait")
        impatient.abort()
        assert [other.result(60).status for other in others] == [200] * 4


def chat(model: str, stub: dict[str, Any] | None = None) -> bytes:
    """A chat request on the wire."""
    return request_bytes("POST", CHAT, chat_body(model, stream=True), json_fields(stub=stub))


def samples(daemon: Daemon) -> dict[Series, float]:
    """Every sample of the daemon, as Prometheus would have it."""
    families = text_string_to_metric_families(daemon.get("/metrics").body.decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def standing(found: dict[Series, float]) -> dict[Series, float]:
    """Those that change only when somebody does something."""
    return {series: value for series, value in found.items() if STANDING.match(series[0])}


# --- the numbers -------------------------------------------------------------------------------------------


def test_prometheus_has_each_number_that_the_daemon_has(watched: Watched) -> None:
    told = samples(watched.daemon)
    seen = watched.prometheus.query('{job="llamaswap", __name__=~"llamaswap_.+"}')

    assert set(seen) == set(told)
    assert standing(seen) == standing(told)
    assert len(standing(told)) > 100


def test_what_was_done_is_what_was_counted(watched: Watched) -> None:
    def total(expression: str) -> float:
        (value,) = watched.prometheus.query(f"sum({expression})").values()
        return value

    assert total('llamaswap_requests_total{model="unknown", code="404"}') == 1
    assert total('llamaswap_limits_reached_total{limit="requestBody"}') == 1
    assert total('llamaswap_scheduler_bounded_total{band="batch", reason="queue_full"}') == 1
    assert total("llamaswap_scheduler_unparseable_priorities_total") == 1
    assert total('llamaswap_scheduler_abandoned_total{band="normal"}') == 1
    assert total('llamaswap_scheduler_dispatched_total{band="interactive"}') == 2
    assert total('llamaswap_scheduler_dispatched_total{band="batch"}') == 2
    assert total('llamaswap_swaps_by_reason_total{reason="preload"}') == 1
    assert total("llamaswap_swaps_by_reason_total") == total("llamaswap_swaps_total")
    assert total('llamaswap_model_state{model="a"} == 1') == 1
    assert total("llamaswap_scheduler_eta_error_seconds_count") >= 1


def test_the_time_of_the_box_is_all_of_the_time_and_goes_on(watched: Watched) -> None:
    prometheus = watched.prometheus
    before, behind = by_state(prometheus), behind_the_clock(prometheus)
    prometheus.wait_scrapes(3)
    after = by_state(prometheus)

    assert before["run"] > 1.5  # the one long job alone
    assert before["load"] > 0.6  # two loads at least
    assert {state for state, seconds in after.items() if seconds > before[state]} == {"idle"}
    assert behind_the_clock(prometheus) == pytest.approx(behind, abs=0.7)


def by_state(prometheus: Prometheus) -> dict[str, float]:
    """The seconds of the box."""
    found = prometheus.query("llamaswap_box_seconds_total")
    return {dict(labels)["state"]: value for (_, labels), value in found.items()}


def behind_the_clock(prometheus: Prometheus) -> float:
    """Seconds between the moment of the scrape and all the time of the box: always the same ones."""
    (seconds,) = prometheus.query(
        'scalar(timestamp(up{job="llamaswap"})) - sum(llamaswap_box_seconds_total)'
    ).values()
    return seconds


def test_a_pause_is_seen_and_its_end(watched: Watched) -> None:
    def paused() -> list[str]:
        found = watched.prometheus.query("llamaswap_scheduler_paused == 1")
        return sorted(dict(labels)["band"] for _, labels in found)

    assert paused() == []
    assert ask(watched.daemon.port, "POST", "/api/scheduler/pause?band=batch").status < 300
    until(lambda: paused() == ["batch"], "the pause to be seen")
    assert ask(watched.daemon.port, "POST", "/api/scheduler/resume").status < 300
    until(lambda: paused() == [], "the end of the pause to be seen")


def test_no_counter_falls_in_a_reload(watched: Watched) -> None:
    before = samples(watched.daemon)
    models = dict(watched.config["models"])
    models["c"] = models.pop("b")

    reload(watched.daemon, watched.folder, {**watched.config, "models": models})
    assert watched.daemon.chat("c").status == 200
    watched.prometheus.wait_scrapes(3)

    after = samples(watched.daemon)
    falling = [series for series in before if series[0].endswith(("_total", "_count", "_bucket"))]
    assert [series for series in falling if after[series] < before[series]] == []
    for name in {name for name, _ in falling}:
        assert watched.prometheus.query(f"resets({name}[10m]) > 0") == {}, name
    assert after["llamaswap_swaps_total", (("model", "c"),)] == 1
    reload(watched.daemon, watched.folder, watched.config)


def test_prometheus_finds_little_fault_with_the_names(watched: Watched) -> None:
    _, complaints = promtool("check", "metrics", told=watched.daemon.get("/metrics").body.decode())

    assert [line for line in complaints.splitlines() if not KEPT_FROM_LLAMA_SWAP.match(line)] == []


# --- the rules ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [("rules", "prometheus-alerts.yaml"), ("config", "prometheus.yaml")])
def test_what_is_shipped_is_valid(words: tuple[str, str]) -> None:
    kind, name = words
    code, told = promtool("check", kind, str(ETC / name))

    assert code == 0, told
    assert "FAILED" not in told


def test_each_alert_fires_when_it_should_and_only_then() -> None:
    code, told = promtool("test", "rules", str(CASES))

    assert code == 0, told


def test_a_case_that_does_not_come_true_would_be_noticed(tmp_path: Path) -> None:
    cases = yaml.safe_load(CASES.read_text())
    cases["rule_files"] = [str(ETC / "prometheus-alerts.yaml")]
    (down,) = (case for case in cases["tests"] if case["name"].startswith("the daemon ends"))
    down["input_series"][0]["values"] = "1x20"
    (tmp_path / "cases.yaml").write_text(yaml.safe_dump({**cases, "tests": [down]}))

    code, told = promtool("test", "rules", str(tmp_path / "cases.yaml"))

    assert code == 1
    assert "LlamaswapDown" in told


def test_prometheus_has_loaded_the_rules_and_they_work_on_the_real_numbers(watched: Watched) -> None:
    groups = watched.prometheus.api("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]

    written = yaml.safe_load((ETC / "prometheus-alerts.yaml").read_text())["groups"]
    names = [rule.get("alert") or rule["record"] for group in written for rule in group["rules"]]
    assert sorted(rule["name"] for rule in rules) == sorted(names)
    assert {rule["name"]: rule.get("lastError") for rule in rules if rule["health"] != "ok"} == {}
    recorded = {rule["name"] for rule in rules if rule["type"] == "recording"}
    assert {name for name in recorded if not watched.prometheus.query(name)} == set()
    assert watched.prometheus.log() == ""


def test_what_was_wrong_is_told_and_nothing_else(watched: Watched) -> None:
    limit = "limits.requestBody was reached"
    watched.prometheus.wait_scrapes(2)
    alerts = watched.prometheus.api("alerts")["alerts"]
    assert {alert["annotations"]["summary"] for alert in alerts if alert["state"] == "firing"} == {limit}
    assert not any("error expanding" in str(alert["annotations"]) for alert in alerts)


# --- the dashboard -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("title", "expression"), list(queries()))
def test_a_panel_has_something_to_show(watched: Watched, title: str, expression: str) -> None:
    found = watched.prometheus.query(expression)

    assert any(value == value for value in found.values()), "no number"  # NaN differs from itself
    assert len({labels for _, labels in found}) == len(found)


def test_a_daemon_that_does_not_answer_is_down(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        with prometheus_of(nobody.getsockname()[1], tmp_path) as prometheus:
            until(lambda: prometheus.query('up{job="llamaswap"}') == {("up", ()): 0}, "a scrape to fail")
            until(lambda: bool(prometheus.query('ALERTS{alertname="LlamaswapDown"}')), "the alert")
