"""Who waits long behind a box that takes silence for an end."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, APIStatusError
from openai import OpenAI, Stream

from support.real_daemon import Daemon, started, stub_config
from support.real_daemon_talk import Answer, Wire, ask, chat_body, json_fields, request_bytes, until
from support.real_nginx import nginx_before

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"
PATIENCE = 2  # seconds that nginx waits for anything at all
LONG = 5.0  # seconds that a request waits


@contextmanager
def kept(folder: Path, every: str, **more: Any) -> Iterator[Daemon]:
    """A daemon that keeps who waits company, with one model that is ready."""
    config = {**stub_config(folder, "a", **more), "keepAlive": {"stream": every, "json": every}}
    with started(folder, config) as daemon:
        assert daemon.chat("a").status == 200
        yield daemon


@contextmanager
def busy(daemon: Daemon) -> Iterator[None]:
    """Let a job hold the box for LONG; at the end it is over."""
    job = threading.Thread(target=daemon.chat, args=("a",), kwargs={"stub": {"first": LONG}})
    job.start()
    try:
        until(lambda: len(daemon.get("/api/queue").json["jobs"]) == 1, "the job to begin")
        yield
    finally:
        job.join()


def chat(port: int, *, stream: bool) -> Answer:
    """Ask for a chat, through nginx or not."""
    stub = {"tokens": 3} if stream else {}
    return ask(port, "POST", CHAT, chat_body("a", stream=stream), json_fields(stub=stub))


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_case_068_who_is_kept_alive_survives_a_box_that_cuts_silence(tmp_path: Path, *, stream: bool) -> None:
    with kept(tmp_path, "1s") as daemon, nginx_before(daemon.port, tmp_path, read_timeout=PATIENCE) as front:
        with busy(daemon):
            answer = chat(front, stream=stream)
        row = daemon.rows(3)[-1]

    assert answer.status == 200
    assert int(row["metadata"]["serial_queue_wait_ms"]) > 1000 * PATIENCE
    if stream:
        head, _, rest = answer.body.decode().partition("data: ")
        assert set(head.split("\n\n")) == {": queued, position 1", ""}
        assert head.count(":") >= LONG - 2
        assert rest.endswith("data: [DONE]\n\n") and "\n: " not in rest
    else:
        assert answer.body.startswith(b"  ") and answer.json["model"] == "a"
        assert answer.headers["Content-Type"] == "application/json"


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_case_068_without_it_the_box_gives_up(tmp_path: Path, *, stream: bool) -> None:
    with (
        kept(tmp_path, "0s") as daemon,
        nginx_before(daemon.port, tmp_path, read_timeout=PATIENCE) as front,
        busy(daemon),
    ):
        answer = chat(front, stream=stream)

    assert answer.status == 504


def test_case_068_a_load_and_a_slow_first_token_are_bridged_too(tmp_path: Path) -> None:
    with kept(tmp_path, "1s", words="--load 1.5") as daemon:
        daemon.get("/unload")
        with Wire(daemon.port) as wire:
            fields = json_fields(stub={"first": 2.5, "tokens": 2})
            wire.send(request_bytes("POST", CHAT, chat_body("a", stream=True), fields))
            wire.read_until(b": loading a\n\n")
            wire.read_until(b": waiting for a\n\n")
            wire.read_until(b"[DONE]")


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_case_070_a_clients_library_reads_what_comes_behind_signs_of_life(
    tmp_path: Path, *, stream: bool
) -> None:
    with kept(tmp_path, "1s") as daemon:
        with busy(daemon), OpenAI(base_url=f"http://127.0.0.1:{daemon.port}/v1", api_key="x") as client:
            answer = client.chat.completions.create(
                model="a",
                messages=[{"role": "user", "content": "hi"}],
                stream=stream,
                extra_headers={"X-Stub": '{"tokens": 3}' if stream else "{}"},
            )
            if isinstance(answer, Stream):
                assert len([chunk for chunk in answer if chunk.choices]) == 3
            else:
                assert answer.model == "a"
        row = daemon.rows(3)[-1]

    assert int(row["metadata"]["serial_queue_wait_ms"]) > 2000


LATE = {"first": 1.5}  # seconds of silence, after which a sign of life has been given


def test_a_clients_library_that_goes_by_the_names_of_events_notices_an_error_behind_signs_of_life(
    tmp_path: Path,
) -> None:
    with (
        kept(tmp_path, "1s") as daemon,
        Anthropic(base_url=f"http://127.0.0.1:{daemon.port}", api_key="x", max_retries=0) as client,
    ):
        answer = client.messages.create(
            model="a",
            max_tokens=3,
            messages=[{"role": "user", "content": "hi"}],
            stream=True,
            extra_headers={"X-Stub": json.dumps({**LATE, "status": 500})},
        )
        with pytest.raises(APIStatusError, match="500 Internal Server Error"):
            list(answer)


def test_a_clients_library_notices_a_whole_answer_to_a_stream_behind_signs_of_life(tmp_path: Path) -> None:
    with (
        kept(tmp_path, "1s") as daemon,
        OpenAI(base_url=f"http://127.0.0.1:{daemon.port}/v1", api_key="x") as client,
    ):
        answer = client.chat.completions.create(
            model="a",
            messages=[{"role": "user", "content": "hi"}],
            stream=True,
            extra_headers={"X-Stub": json.dumps({**LATE, "file": "/dev/null", "type": "application/json"})},
        )
        (chunk,) = answer

    assert chunk.model == "a" and chunk.choices is None


def test_a_client_that_leaves_while_it_is_kept_alive_gives_its_place_back(tmp_path: Path) -> None:
    with kept(tmp_path, "1s") as daemon, busy(daemon):
        with Wire(daemon.port) as wire:
            wire.send(request_bytes("POST", CHAT, chat_body("a", stream=True), json_fields()))
            wire.read_until(b": queued, position 1\n\n")
            assert daemon.waiting() == 1
            wire.abort()
        until(lambda: daemon.waiting() == 0, "its place to be free")
        assert json.loads(daemon.get("/api/queue").body)["tickets"] == []
