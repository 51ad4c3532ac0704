"""Streams that are split anywhere: what comes out is what went in, and what they tell is counted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.real_daemon import Daemon, started
from support.real_daemon_talk import Answer, ask, chat_body
from support.real_odd import odd_config, odd_fields

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with started(tmp_path_factory.mktemp("odd"), odd_config("a")) as daemon:
        assert daemon.chat("a").status == 200
        yield daemon


def event(**facts: Any) -> bytes:
    return b"data: " + json.dumps(facts, ensure_ascii=False).encode() + b"\n\n"


def usage(prompt: int, completion: int) -> bytes:
    return event(choices=[], usage={"prompt_tokens": prompt, "completion_tokens": completion})


DONE = b"data: [DONE]\n\n"


def streamed(daemon: Daemon, body: bytes, folder: Path, sizes: list[int], **how: Any) -> Answer:
    """Have this body sent in such pieces; it has to come out as it went in."""
    path = folder / "body"
    path.write_bytes(body)
    fields = odd_fields(path, sizes, **how)
    answer = ask(daemon.port, "POST", CHAT, chat_body("a", stream=True), fields)
    assert answer.status == 200
    assert hashlib.sha256(answer.body).digest() == hashlib.sha256(body).digest(), len(answer.body)
    return answer


def counted(daemon: Daemon, before: int) -> tuple[int, int]:
    """The tokens that the next row counts: in and out."""
    tokens = daemon.rows(before + 1)[before]["tokens"]
    return tokens["input_tokens"], tokens["output_tokens"]


def test_a_line_of_eight_megabytes_passes_and_the_usage_behind_it_is_counted(
    daemon: Daemon, tmp_path: Path
) -> None:
    before = len(daemon.rows())
    image = event(choices=[{"delta": {"content": "A" * 8_000_000}}])

    streamed(daemon, image + usage(11, 22) + DONE, tmp_path, [60_001])

    assert counted(daemon, before) == (11, 22)


def test_a_usage_inside_a_line_of_eight_megabytes_costs_no_byte_of_the_answer(
    daemon: Daemon, tmp_path: Path
) -> None:
    before = len(daemon.rows())
    giant = event(
        choices=[{"delta": {"content": "A" * 8_000_000}}], usage={"prompt_tokens": 1, "completion_tokens": 2}
    )

    streamed(daemon, giant + usage(33, 44) + DONE, tmp_path, [1 << 16])

    assert counted(daemon, before) == (33, 44)


SMALL = (
    event(choices=[{"delta": {"content": "grüß dich, 世界 \u2028 🦙"}}])
    + b": a comment\n\n"
    + event(choices=[{"delta": {"content": "data: [DONE]\\n\\n"}}])
    + usage(7, 9)
    + DONE
)


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
@pytest.mark.parametrize("sizes", [[1], [2, 3, 1], [7], [1000]], ids=str)
def test_events_that_are_split_anywhere_come_out_whole_and_are_counted(
    sizes: list[int], framing: str, daemon: Daemon, tmp_path: Path
) -> None:
    before = len(daemon.rows())

    streamed(daemon, SMALL, tmp_path, sizes, framing=framing)

    assert counted(daemon, before) == (7, 9)


def test_line_ends_of_two_characters_may_be_split_between_them(daemon: Daemon, tmp_path: Path) -> None:
    before = len(daemon.rows())

    streamed(daemon, SMALL.replace(b"\n", b"\r\n"), tmp_path, [1])

    assert counted(daemon, before) == (7, 9)


def test_a_stream_without_its_last_blank_line_or_without_a_blank_behind_data_is_counted(
    daemon: Daemon, tmp_path: Path
) -> None:
    before = len(daemon.rows())

    streamed(daemon, SMALL.replace(b"data: ", b"data:"), tmp_path, [5])
    streamed(daemon, usage(3, 4).rstrip(), tmp_path, [1])

    assert [counted(daemon, before), counted(daemon, before + 1)] == [(7, 9), (3, 4)]


def test_a_thousand_events_in_one_byte_pieces_pass(daemon: Daemon, tmp_path: Path) -> None:
    before = len(daemon.rows())
    body = b"".join(event(n=number) for number in range(1500)) + usage(5, 6) + DONE

    streamed(daemon, body, tmp_path, [1])

    assert counted(daemon, before) == (5, 6)


def test_an_event_stream_is_marked_once_for_buffering_proxies_whatever_its_upstream_says(
    daemon: Daemon, tmp_path: Path
) -> None:
    said = ["X-Accel-Buffering: yes", "Cache-Control: no-cache"]

    answer = streamed(daemon, SMALL, tmp_path, [1000], fields=said)
    plain = streamed(daemon, b"{}", tmp_path, [1000], type="application/json")

    assert answer.headers.get_all("X-Accel-Buffering") == ["no"]
    assert answer.headers.get_all("Cache-Control") == ["no-cache"]
    assert plain.headers.get_all("X-Accel-Buffering") is None
