"""Behind nginx with its default settings, which hold responses back unless they say that they must not be."""

from __future__ import annotations

import hashlib
import json
import statistics
import sys
import time
from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import pytest

from support.real_daemon import Daemon, started, stub_config
from support.real_daemon_talk import Wire, ask, chat_body, json_fields, request_bytes, until
from support.real_events import EventSource
from support.real_nginx import nginx_before
from support.real_sizes import SteadyStream

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    folder = tmp_path_factory.mktemp("behind")
    with started(folder, stub_config(folder, "a", "b", words="--load 0.2", sendLoadingState=True)) as daemon:
        assert daemon.chat("a").status == 200
        yield daemon


@pytest.fixture(scope="module")
def front(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with nginx_before(daemon.port, tmp_path_factory.mktemp("nginx")) as port:
        yield port


def test_tokens_come_one_by_one_through_nginx(front: int, capsys: pytest.CaptureFixture[str]) -> None:
    with SteadyStream(front, "a", tokens=20, gap=0.1) as stream:
        stream.wait()

    gaps = [after - before for before, after in pairwise(stream.arrivals)]
    with capsys.disabled():
        sys.stdout.write(
            f"\ntokens 100 ms apart through nginx: median gap {1000 * statistics.median(gaps):.1f} ms, "
            f"largest {1000 * max(gaps):.1f} ms\n"
        )
    assert 0.08 < statistics.median(gaps) < 0.15
    assert max(gaps) < 0.4


def test_what_is_told_of_a_load_and_the_answer_behind_it_come_through_nginx(
    front: int, daemon: Daemon
) -> None:
    assert daemon.chat("a").status == 200
    with Wire(front) as wire:
        fields = json_fields(stub={"tokens": 2})
        wire.send(request_bytes("POST", CHAT, chat_body("b", stream=True), fields))
        wire.read_until(b'"-swap"')
        wire.read_until(b'"n": 1')
        wire.read_until(b"[DONE]")


def test_case_066_events_come_through_nginx_when_they_happen(front: int, daemon: Daemon) -> None:
    with EventSource(front) as source:
        source.wait("queueStatus", lambda _: True)
        for number in range(3):
            assert daemon.chat("a").status == 200
            done = time.monotonic()
            until(partial(_told, source, number + 1), "the row to be told")
            assert source.events[-1].at - done < 1.0


def _told(source: EventSource, rows: int) -> bool:
    return len(source.of("activity")) >= rows  # one of an earlier test may be told a moment late


def test_case_066_the_log_comes_through_nginx_while_it_is_written(front: int, daemon: Daemon) -> None:
    with Wire(front) as wire:
        wire.send(request_bytes("GET", "/logs/stream/proxy?no-history"))
        wire.read_until(b"\r\n\r\n")
        began = time.monotonic()
        daemon.get("/api/version?mark=1")
        daemon.get("/running")
        wire.read_until(b"/running")
        assert time.monotonic() - began < 1.0


def test_a_prefix_that_nginx_strips_changes_nothing_for_callers(front: int) -> None:
    listed = ask(front, "GET", "/llm/v1/models").json
    told = ask(front, "POST", "/llm" + CHAT, chat_body("a"), json_fields()).json

    assert [model["id"] for model in listed["data"]] == ["a", "b"]
    assert told["target"] == CHAT


def test_uploads_and_large_answers_cross_nginx_whole(front: int) -> None:
    body = chat_body("a", image="0123456789" * 500_000)

    up = ask(front, "POST", CHAT, body, json_fields())
    down = ask(front, "POST", CHAT, chat_body("a"), json_fields(stub={"fill": 5_000_000}))

    assert up.json["sha256"] == hashlib.sha256(body).hexdigest()
    assert down.body == bytes(5_000_000)


def test_the_client_that_nginx_names_is_the_one_that_is_shown(front: int, daemon: Daemon) -> None:
    fields = {**json_fields(stub={"tokens": 20, "gap": 0.05}), "X-Forwarded-For": "203.0.113.9"}
    with EventSource(daemon.port) as source, Wire(front) as wire:
        wire.send(request_bytes("POST", CHAT, chat_body("a"), fields))
        shown = source.wait("inflight", lambda told: told["operation"] == "upsert")
        wire.read_until(b"[DONE]")

    assert shown["request"]["remote_ip"] == "203.0.113.9"


def test_a_client_that_leaves_nginx_frees_the_box(front: int, daemon: Daemon) -> None:
    with Wire(front) as wire:
        wire.send(request_bytes("POST", CHAT, chat_body("a"), json_fields(stub={"tokens": 600, "gap": 0.05})))
        wire.read_until(b'"n": 1')
        wire.abort()
    began = time.monotonic()

    assert json.loads(daemon.chat("a").body)["model"] == "a"
    assert time.monotonic() - began < 3
