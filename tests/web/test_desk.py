"""The pages about the service itself, and the buttons that stop models."""

from __future__ import annotations

import pytest

import llamaswap
from support.activity_rows import Ready, visit
from support.telemetry_machine import Machine
from support.web_daemon import NOON, WebDaemon

FLEET = """
    routing: {scheduler: {use: serial}}
    groups: {all: {swap: false, members: [a, author/m2]}}
    models:
      a: {cmd: serve a, proxy: "http://127.0.0.1:9001", aliases: [nick]}
      author/m2: {cmd: serve author/m2, proxy: "http://127.0.0.1:9002"}
"""


@pytest.mark.parametrize("path", ["/health", "/wol-health"])
def test_health_is_ok_whatever_the_models_do(path: str) -> None:
    asked = WebDaemon().get(path)

    assert (asked.status, asked.body) == (200, b"OK")
    assert asked.headers["content-type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize(
    "path", ["/health", "/v1/models", "/running", "/metrics", "/api/version", "/logs", "/ui/", "/unload"]
)
def test_a_head_is_a_get_without_its_body(path: str) -> None:
    daemon = WebDaemon()

    head, get = daemon.request("HEAD", path), daemon.get(path)

    assert head.status == get.status == 200
    assert head.body == b""
    assert head.headers["content-type"] == get.headers["content-type"]


def test_the_version_is_ours() -> None:
    assert WebDaemon().get("/api/version").json["version"] == llamaswap.__version__


def test_the_root_sends_browsers_to_the_page_of_links() -> None:
    daemon = WebDaemon()

    assert daemon.get("/").headers["location"].startswith("/ui")
    assert b"/api/metrics/activity" in daemon.get("/ui/").body
    assert daemon.get("/ui/anything").status == 200


def test_metrics_are_in_the_text_format() -> None:
    asked = WebDaemon().get("/metrics")

    assert asked.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert b'llamaswap_scheduler_queue_depth{band="interactive"} 0.0\n' in asked.body


def watched(config: str) -> WebDaemon:
    """A daemon that has begun to watch its machine."""
    daemon = WebDaemon(config, sampler=lambda reactor: Machine().sampler(reactor, lambda: NOON))
    assert daemon.sampler is not None
    daemon.sampler.start()
    return daemon


UNCONFIGURED = """
    models: {a: {cmd: serve a, proxy: "http://127.0.0.1:9001"}}
"""


def test_metrics_of_a_machine_nobody_watches_are_unavailable_as_in_llama_swap() -> None:
    asked = WebDaemon(UNCONFIGURED).get("/metrics")

    assert (asked.status, asked.body) == (503, b"# performance monitor not available\n")
    assert asked.headers["content-type"] == "text/plain; charset=utf-8"


def test_until_the_first_sample_metrics_are_empty_as_in_llama_swap() -> None:
    asked = watched(UNCONFIGURED).get("/metrics")

    assert (asked.status, asked.body) == (200, b"")
    assert asked.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


def test_then_they_tell_of_the_machine_and_of_the_queue() -> None:
    daemon = watched(UNCONFIGURED)
    daemon.reactor.advance(5.0)

    told = daemon.get("/metrics").body

    assert b"llamaswap_memory_total_bytes " in told
    assert b"llamaswap_gpu_power_draw_watts{" in told
    assert b'llamaswap_scheduler_queue_depth{band="normal"} 0.0\n' in told


def test_who_configures_a_scheduler_has_its_metrics_whether_or_not_a_machine_is_watched() -> None:
    daemon = watched(FLEET)

    for one in (daemon, WebDaemon(FLEET)):
        assert b"llamaswap_scheduler_queue_depth" in one.get("/metrics").body
    assert b"llamaswap_memory_total_bytes" not in daemon.get("/metrics").body
    daemon.reactor.advance(5.0)
    assert b"llamaswap_memory_total_bytes" in daemon.get("/metrics").body


def test_no_series_says_when_it_was_made() -> None:
    daemon = WebDaemon()
    daemon.warm()

    assert b"_created" not in daemon.get("/metrics").body


def test_there_is_no_icon_and_nobody_needs_a_key_to_learn_that() -> None:
    asked = WebDaemon(FLEET, api_keys=("secret",)).get("/favicon.ico")

    assert (asked.status, asked.body) == (404, b"404 page not found\n")


@pytest.mark.parametrize(
    ("path", "status", "place"),
    [("/", 302, "/ui"), ("/ui", 307, "/ui/"), ("/upstream", 302, "/ui/models")],
)
def test_browsers_are_led_to_the_pages(path: str, status: int, place: str) -> None:
    asked = WebDaemon(FLEET, api_keys=("secret",)).get(path)

    assert (asked.status, asked.headers["location"]) == (status, place)


def test_metrics_show_the_queue_as_it_is_now() -> None:
    daemon = WebDaemon()
    daemon.chat("a")
    daemon.chat("b", X_LlamaSwap_Priority="50")
    daemon.reactor.advance(3.0)

    assert daemon.metric('llamaswap_scheduler_queue_depth{band="normal"}') == 1
    assert daemon.metric('llamaswap_scheduler_queue_oldest_wait_seconds{band="normal"}') == 3.0
    assert daemon.metric('llamaswap_scheduler_dispatched_total{band="normal"}') == 1
    assert daemon.metric('llamaswap_swaps_total{model="a"}') == 1
    assert daemon.metric('llamaswap_model_state{model="a",state="starting"}') == 1


def test_activity_is_shown_newest_first() -> None:
    daemon = WebDaemon()
    daemon.journal.leave(Ready(visit("m1")))
    daemon.journal.leave(Ready(visit("m2", metadata={"serial_band": "batch"})))

    page = daemon.get("/api/metrics/activity?limit=10").json

    assert [row["model"] for row in page["data"]] == ["m2", "m1"]
    assert page["data"][0]["metadata"] == {"serial_band": "batch"}
    assert (page["total"], page["page"], page["limit"]) == (2, 1, 10)
    assert daemon.get("/api/metrics/activity?model=m1").json["total"] == 1


def test_a_bad_question_about_activity_is_told_what_is_wrong() -> None:
    asked = WebDaemon().get("/api/metrics/activity?limit=0")

    assert asked.status == 400
    assert asked.message == "limit must be between 1 and 999"


def test_stats_are_sums_over_all_or_one_model() -> None:
    daemon = WebDaemon()
    daemon.journal.leave(Ready(visit("m1")))

    assert daemon.get("/api/metrics/stats").json["total_requests"] == 1
    assert daemon.get("/api/metrics/stats?model=m2").json["total_requests"] == 0


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/api/metrics/activity", "failed to get activity"),
        ("/api/metrics/stats", "failed to get activity stats"),
    ],
)
def test_a_store_that_fails_is_an_error_500(path: str, message: str) -> None:
    daemon = WebDaemon()
    daemon.journal.breaks()

    asked = daemon.get(path)

    assert (asked.status, asked.message) == (500, message)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("GET", "/unload", b"OK"), ("POST", "/api/models/unload", b'{"msg":"ok"}\n')],
)
def test_unloading_everything_answers_when_all_have_stopped(method: str, path: str, body: bytes) -> None:
    daemon = WebDaemon(FLEET)
    daemon.warm("a")
    daemon.warm("author/m2")

    asked = daemon.request(method, path)
    assert asked.waits
    daemon.goes()

    assert (asked.status, asked.body) == (200, body)
    assert daemon.get("/running").json == {"running": []}


@pytest.mark.parametrize("name", ["author/m2", "author%2Fm2"])
def test_unloading_one_model_leaves_the_others_alone(name: str) -> None:
    daemon = WebDaemon(FLEET)
    daemon.warm("a")
    daemon.warm("author/m2")

    asked = daemon.request("POST", f"/api/models/unload/{name}")
    daemon.goes()

    assert (asked.status, asked.body) == (200, b"OK")
    assert daemon.running == ["a"]


def test_unloading_by_alias_and_what_does_not_run_is_fine() -> None:
    assert WebDaemon(FLEET).request("POST", "/api/models/unload/nick").status == 200


@pytest.mark.parametrize("name", ["", "ghost", "a/x"])
def test_unloading_an_unknown_model_is_refused(name: str) -> None:
    asked = WebDaemon(FLEET).request("POST", f"/api/models/unload/{name}")

    assert (asked.status, asked.message) == (404, "model not found")


def test_an_unload_fails_the_job_that_loads_and_the_next_one_loads_again() -> None:
    daemon = WebDaemon(FLEET)
    loading, waiting = daemon.chat(), daemon.chat()

    daemon.get("/unload")
    daemon.goes()

    assert (loading.status, loading.message) == (500, "unspecific error: group: model unloaded")
    assert waiting.waits
    daemon.ready()
    daemon.upstream().answers()
    assert waiting.status == 200
