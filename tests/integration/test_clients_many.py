"""The HTTP clients that people use, each with its own habits, against one daemon."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from support.real_daemon import Daemon, events, started, stub_config
from support.real_daemon_talk import json_fields, until
from support.real_events import EventSource

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"
CHAT_JSON = {"model": "a", "messages": [{"role": "user", "content": "hi"}]}
AUDIO = bytes(range(256)) * 4096  # holds every byte, line ends and dashes among them


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("many")


@pytest.fixture(scope="module")
def daemon(folder: Path) -> Iterator[Daemon]:
    with started(folder, stub_config(folder)) as daemon:
        assert daemon.chat("a").status == 200
        yield daemon


@pytest.fixture(scope="module")
def base(daemon: Daemon) -> str:
    return f"http://127.0.0.1:{daemon.port}"


def stub(**wishes: Any) -> dict[str, str]:
    return json_fields(stub=wishes)


def numbers(lines: Iterator[str]) -> list[int]:
    """The numbers of the tokens in the lines of an event stream."""
    told = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    return [event["n"] for event in told if "n" in event]


def left(folder: Path, tag: str) -> list[Any]:
    """What the stub noted of a client that left."""
    return [note for note in events(folder, "left") if note["tag"] == tag]


# httpx


def test_httpx_asks_streams_and_uploads_over_one_connection(base: str) -> None:
    with httpx.Client(base_url=base, timeout=30) as client:
        whole = client.post(CHAT, json=CHAT_JSON)
        with client.stream("POST", CHAT, json=CHAT_JSON, headers=stub(tokens=5)) as stream:
            heard = numbers(stream.iter_lines())
        form = client.post(
            "/v1/audio/transcriptions",
            data={"model": "a", "language": "de"},
            files={"file": ("grüße.wav", AUDIO, "audio/wav")},
        )
        pieces = client.post(
            CHAT,
            content=iter([b'{"model"', b': "a", "x": ', b"1}"]),
            headers={"Content-Type": "application/json"},
        )

    assert whole.json()["usage"]["completion_tokens"] == 5
    assert heard == [0, 1, 2, 3, 4]
    assert form.json()["size"] > len(AUDIO)
    assert pieces.json()["sha256"] == hashlib.sha256(b'{"model": "a", "x": 1}').hexdigest()


def test_httpx_that_loses_patience_frees_the_box(base: str, folder: Path, daemon: Daemon) -> None:
    fields = json_fields(stub={"first": 30}, tag="impatient")
    with httpx.Client(base_url=base, timeout=0.3) as client, pytest.raises(httpx.ReadTimeout):
        client.post(CHAT, json=CHAT_JSON, headers=fields)

    until(lambda: left(folder, "impatient"), "the stub to be left", 2.0)
    assert daemon.chat("a").status == 200


def test_httpx_sees_refusals_as_what_they_are(base: str) -> None:
    with httpx.Client(base_url=base, timeout=30) as client:
        unknown = client.post(CHAT, json={**CHAT_JSON, "model": "none"})
        wrong = client.get(CHAT)
        nowhere = client.get("/v2/chat")
        upstreams = client.post(CHAT, json=CHAT_JSON, headers=stub(status=418))

    assert [answer.status_code for answer in (unknown, wrong, nowhere, upstreams)] == [404, 405, 404, 418]
    assert unknown.json()["error"]["message"] == "no router for requested model"
    assert wrong.headers["allow"] == "POST"


# aiohttp


async def pieces_of(body: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(body), 1000):
        yield body[at : at + 1000]


async def aiohttp_visit(base: str) -> tuple[Any, list[int], Any, Any]:
    limit = aiohttp.ClientTimeout(total=30)
    async with aiohttp.ClientSession(base, timeout=limit) as session:
        async with session.post(CHAT, json=CHAT_JSON) as whole:
            told = await whole.json()
        async with session.post(CHAT, json=CHAT_JSON, headers=stub(tokens=5)) as stream:
            lines = [line.decode() async for line in stream.content]
        form = aiohttp.FormData({"model": "a"})
        form.add_field("file", AUDIO, filename="x.wav", content_type="audio/wav")
        async with session.post("/v1/audio/transcriptions", data=form) as upload:
            uploaded = await upload.json()
        body = json.dumps({**CHAT_JSON, "filler": "y" * 20_000}).encode()
        fields = {"Content-Type": "application/json"}
        async with session.post(CHAT, data=pieces_of(body), headers=fields, expect100=True) as chunked:
            sent = await chunked.json()
        assert sent["sha256"] == hashlib.sha256(body).hexdigest()
    return told, numbers(iter(lines)), uploaded, sent


def test_aiohttp_asks_streams_and_uploads_in_chunks_after_a_continue(base: str) -> None:
    told, heard, uploaded, sent = asyncio.run(aiohttp_visit(base))

    assert told["model"] == "a"
    assert heard == [0, 1, 2, 3, 4]
    assert uploaded["size"] > len(AUDIO)
    assert sent["headers"]["transfer-encoding"] == "chunked"


async def many_at_once(base: str, count: int) -> list[int]:
    connector = aiohttp.TCPConnector(limit=20)
    async with aiohttp.ClientSession(base, connector=connector) as session:

        async def one(number: int) -> int:
            async with session.post(CHAT, json={**CHAT_JSON, "n": number}) as answer:
                told = await answer.json()
                assert told["size"] > 0
                return answer.status

        return list(await asyncio.gather(*(one(number) for number in range(count))))


def test_aiohttp_asks_two_hundred_times_over_twenty_connections(base: str) -> None:
    assert asyncio.run(many_at_once(base, 200)) == [200] * 200


async def cut_task(base: str) -> None:
    async with aiohttp.ClientSession(base) as session:
        fields = json_fields(stub={"tokens": 500, "gap": 0.05}, tag="cut task")
        async with session.post(CHAT, json=CHAT_JSON, headers=fields) as stream:
            await stream.content.readline()


def test_aiohttp_that_leaves_a_stream_frees_the_box(base: str, folder: Path, daemon: Daemon) -> None:
    asyncio.run(cut_task(base))

    until(lambda: left(folder, "cut task"), "the stub to be left", 2.0)
    assert daemon.chat("a").status == 200


# requests


def test_requests_asks_streams_and_uploads(base: str) -> None:
    with requests.Session() as session:
        whole = session.post(base + CHAT, json=CHAT_JSON, timeout=30)
        with session.post(
            base + CHAT, json=CHAT_JSON, headers=stub(tokens=5), stream=True, timeout=30
        ) as got:
            heard = numbers(got.iter_lines(decode_unicode=True))
        form = session.post(
            base + "/v1/audio/transcriptions",
            data={"model": "a"},
            files={"file": ("x.wav", AUDIO)},
            timeout=30,
        )
        moved = session.get(base + "/upstream/a", timeout=30)

    assert whole.json()["usage"]["total_tokens"] == 8
    assert heard == [0, 1, 2, 3, 4]
    assert form.json()["size"] > len(AUDIO)
    assert moved.history[0].status_code == 301
    assert moved.json()["target"] == "/"


# curl


def curl(base: str, *words: str) -> str:
    """Run curl; returns what it prints."""
    ended = subprocess.run(
        ["curl", "-sS", "--max-time", "30", *words[:-1], base + words[-1]],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_curl_asks_with_every_habit_of_its_own(base: str, tmp_path: Path) -> None:
    kind = ("-H", "Content-Type: application/json")
    body = json.dumps({**CHAT_JSON, "filler": "z" * 1_500_000})
    (tmp_path / "body").write_text(body)
    (tmp_path / "x.wav").write_bytes(AUDIO)
    big = f"@{tmp_path / 'body'}"

    plain = json.loads(curl(base, *kind, "-d", json.dumps(CHAT_JSON), CHAT))
    waits = json.loads(curl(base, *kind, "-H", "Expect: 100-continue", "--data-binary", big, CHAT))
    old = json.loads(curl(base, "-0", *kind, "--data-binary", big, CHAT))
    chunks = json.loads(curl(base, *kind, "-H", "Transfer-Encoding: chunked", "--data-binary", big, CHAT))
    form = json.loads(
        curl(base, "-F", f"file=@{tmp_path / 'x.wav'}", "-F", "model=a", "/v1/audio/transcriptions")
    )
    squeezed = json.loads(curl(base, "--compressed", *kind, "-d", json.dumps(CHAT_JSON), CHAT))

    digest = hashlib.sha256(body.encode()).hexdigest()
    assert [told["sha256"] for told in (waits, old, chunks)] == [digest] * 3
    assert plain["model"] == squeezed["model"] == "a"
    assert form["size"] > len(AUDIO)


def test_curl_streams_and_the_usual_health_check_succeeds(base: str) -> None:
    wish = ("-N", "-H", 'X-Stub: {"tokens": 5}', "-H", "Content-Type: application/json")

    assert numbers(iter(curl(base, *wish, "-d", json.dumps(CHAT_JSON), CHAT).splitlines())) == [0, 1, 2, 3, 4]
    assert curl(base, "-f", "-o", "/dev/null", "-w", "%{http_code}", "/") == "302"


# What reads metrics and events


def test_prometheus_can_parse_every_metric_and_no_sample_comes_twice(daemon: Daemon) -> None:
    answer = daemon.get("/metrics")
    families = list(text_string_to_metric_families(answer.body.decode()))

    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    assert len({family.name for family in families}) == len(families)
    samples = [(s.name, tuple(sorted(s.labels.items()))) for family in families for s in family.samples]
    assert len(set(samples)) == len(samples)
    by_name = {family.name: family for family in families}
    depth = by_name["llamaswap_scheduler_queue_depth"]
    assert depth.type == "gauge"
    assert {s.labels["band"] for s in depth.samples} == {"interactive", "normal", "batch"}
    assert by_name["llamaswap_scheduler_dispatched"].type == "counter"
    assert all(family.documentation for family in families)


def test_an_event_source_can_parse_the_events(daemon: Daemon) -> None:
    with EventSource(daemon.port) as source:
        began = time.monotonic()
        source.wait("queueStatus", lambda _: True)
        daemon.chat("a")
        row = source.wait("activity", lambda data: data["id"])

    assert source.response.headers["Content-Type"] == "text/event-stream"
    assert row["id"] in {found["id"] for found in daemon.rows()}
    assert time.monotonic() - began < 10
