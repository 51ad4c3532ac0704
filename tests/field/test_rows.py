"""Cases from the field: what is told of a request afterwards, whatever its stream looked like."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.field import Field, stub
from support.field_call import CHAT

pytestmark = pytest.mark.integration

TIMINGS = {
    "cache_n": 40,
    "prompt_n": 12,
    "prompt_ms": 60.0,
    "prompt_per_second": 200.0,
    "predicted_n": 90,
    "predicted_ms": 1800.0,
    "predicted_per_second": 50.25,
    "draft_n": 30,
    "draft_n_accepted": 21,
}
UNKNOWN = {"cache_tokens": -1, "draft_tokens": -1, "draft_acc_tokens": -1}
NOTHING_SAID = {
    "input_tokens": 0,
    "output_tokens": 0,
    "cache_tokens": 0,
    "draft_tokens": 0,
    "draft_acc_tokens": 0,
    "prompt_per_second": 0,
    "tokens_per_second": 0,
}


def test_case_091_speeds_are_the_servers_and_neither_queue_nor_load_counts(tmp_path: Path) -> None:
    """A speed that the server does not tell is -1: no number is better than a wrong one."""
    told = {"usage": {"prompt_tokens": 52, "completion_tokens": 90}, "timings": TIMINGS}
    with Field(tmp_path, {"A": stub("--load 0.3"), "B": ""}) as field:
        blocker = field.send("B", stub={"tokens": 8, "gap": 0.05})
        field.until(lambda: field.records("arrived", "B"), "a job")
        waiting = field.send("A", stub={**told, "tokens": 4, "gap": 0.1}, stream=True)
        assert (blocker.wait().wrong(), waiting.wait().wrong()) == ("", "")
        field.chat("A", stub={"timings": {}, "usage": {"prompt_tokens": 7, "completion_tokens": 0}})
        field.chat("A", stub={"timings": {}, "usage": {}})
        field.chat(
            "A", stub={"timings": {}, "usage": {"prompt_tokens": 0, "completion_tokens": 0}}, stream=True
        )

        _, exact, silent, mute, zero = field.rows(5)
        assert exact["tokens"] == {
            "input_tokens": 12,
            "output_tokens": 90,
            "cache_tokens": 40,
            "draft_tokens": 30,
            "draft_acc_tokens": 21,
            "prompt_per_second": 200.0,
            "tokens_per_second": 50.25,
        }
        meta = exact["metadata"]
        queued, load = int(meta["serial_queue_wait_ms"]), int(meta["serial_load_ms"])
        assert queued > 200
        assert load > 250
        assert exact["duration_ms"] >= max(queued + load + 300, 1860)
        assert silent["tokens"] == {
            **UNKNOWN,
            "input_tokens": 7,
            "output_tokens": 0,
            "prompt_per_second": -1,
            "tokens_per_second": -1,
        }
        assert mute["tokens"] == NOTHING_SAID
        assert zero["tokens"] == {**UNKNOWN, **dict.fromkeys(("input_tokens", "output_tokens"), 0)} | {
            "prompt_per_second": -1,
            "tokens_per_second": -1,
        }


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    with Field(tmp_path_factory.mktemp("rows"), {"A": "", "B": ""}) as field:
        assert field.chat("A").ok
        yield field


def test_case_091_the_histogram_is_made_of_the_rows(loaded: Field) -> None:
    speeds = [3.0, 5.0, 10.5, 50.0]
    seen = len(loaded.rows())
    for speed in speeds:
        loaded.chat("B", stub={"timings": {**TIMINGS, "predicted_per_second": speed}})
    silences: list[dict[str, Any]] = [{"timings": {}}, {"timings": {}, "usage": {}}, {"status": 500}]
    for silence in silences:
        loaded.chat("B", stub=silence)

    rows = loaded.rows(seen + 7)[seen:]
    stats = loaded.get("/api/metrics/stats?model=B").json
    known = [row["tokens"]["tokens_per_second"] for row in rows if row["tokens"]["tokens_per_second"] > 0]
    assert known == speeds
    histogram = stats["gen_histogram"]
    assert (histogram["bins"], histogram["binSize"]) == ([3, 0, 0, 0, 1], pytest.approx(9.4))
    assert (histogram["min"], histogram["max"], histogram["p50"]) == (3.0, 50.0, pytest.approx(7.75))
    assert stats["total_requests"] == 7
    assert stats["total_output_tokens"] == sum(row["tokens"]["output_tokens"] for row in rows)
    assert loaded.get("/api/metrics/stats?model=C").json["gen_histogram"] is None


SHAPES: dict[str, tuple[dict[str, Any], tuple[int, int]]] = {
    "usage in the last chunk": ({"timings": {}}, (3, 4)),
    "no usage": ({"timings": {}, "usage": {}}, (0, 0)),
    "timings only": ({"usage": {}, "timings": TIMINGS}, (12, 90)),
    "no [DONE]": ({"done": False}, (3, 4)),
    "line ends of two characters": ({"crlf": True}, (3, 4)),
    "no space behind data:": ({"tight": True}, (3, 4)),
    "comments first": ({"comments": 3}, (3, 4)),
    "split": ({"split": True}, (3, 4)),
    "split, CRLF, tight": ({"split": True, "crlf": True, "tight": True, "comments": 1}, (3, 4)),
    "single bytes": ({"sizes": [1]}, (3, 4)),
    "single bytes and CRLF": ({"sizes": [1], "crlf": True}, (3, 4)),
    "a long line": ({"big_line": 300_000}, (3, 4)),
    "gzip": ({"gzip": True}, (3, 4)),
}
PATHS = (CHAT, "/v1/completions", "/v1/messages", "/v1/responses", "/completion", "/infill")


@pytest.mark.parametrize("path", PATHS)
def test_case_092_a_stream_leaves_one_row_with_its_tokens_whatever_it_looks_like(
    path: str, loaded: Field
) -> None:
    silent = path in ("/completion", "/infill")  # these have timings, and no usage
    shapes = {name: shape for name, shape in SHAPES.items() if not (silent and "usage" in shape[0])}
    seen = len(loaded.rows())
    for name, (wish, _) in shapes.items():
        call = loaded.chat("A", path=path, stream=True, stub={"tokens": 4, **wish})
        assert call.complete, name
        if "big_line" not in wish and wish.get("done", True):
            assert call.wrong() == "", name

    rows = loaded.rows(seen + len(shapes))[seen:]
    for row, (name, (wish, tokens)) in zip(rows, shapes.items(), strict=True):
        assert row["resp_status_code"] == 200
        assert "error_msg" not in row, name
        expected = tokens_of(path, wish, tokens)
        assert (row["tokens"]["input_tokens"], row["tokens"]["output_tokens"]) == expected, (name, row)
        assert row["has_capture"], name


def tokens_of(path: str, wish: dict[str, Any], tokens: tuple[int, int]) -> tuple[int, int]:
    """What a row has to say: Anthropic's and the Responses API's servers tell no timings."""
    if path in ("/v1/messages", "/v1/responses") and wish.get("usage") == {}:
        return (0, 0)
    if path in ("/completion", "/infill") and wish.get("timings") == {}:
        return (0, 0)
    return tokens


ODD_STREAMS: dict[str, tuple[bytes, tuple[int, int]]] = {
    "nothing": (b"", (0, 0)),
    "no last blank line": (b'data: {"usage":{"prompt_tokens":5,"completion_tokens":6}}', (5, 6)),
    "not even a line end": (
        b'data:{"choices":[]}\n\ndata:{"usage":{"input_tokens":5,"output_tokens":6}}',
        (5, 6),
    ),
    "no JSON": (b"data: {nope\n\ndata: \n\ndata: 7\n\ndata: null\n\ndata: []\n\n", (0, 0)),
    "usage is none": (
        b'data: {"usage":null}\n\ndata: {"usage":7}\n\ndata: {"usage":{"prompt_tokens":"x"}}\n\n',
        (0, 0),
    ),
    "a byte order mark": (
        b'\xef\xbb\xbfdata: {"a":1}\n\ndata: {"usage":{"prompt_tokens":5,"completion_tokens":6}}\n\n',
        (5, 6),
    ),
    "bytes that are no text": (
        b'data: "\xff\xfe"\n\ndata: {"usage":{"prompt_tokens":5,"completion_tokens":6}}\n\n',
        (5, 6),
    ),
    "an error event": (b'event: error\ndata: {"error":{"message":"m"}}\n\n', (0, 0)),
    "fields in between": (
        b'id: 7\nretry: 10\nevent: x\ndata: {"usage":{"prompt_tokens":5,"completion_tokens":6}}\n\n: bye\n\n',
        (5, 6),
    ),
    "numbers that are none": (b'data: {"usage":{"prompt_tokens":-5,"completion_tokens":1e400}}\n\n', (0, 0)),
}


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_case_092_no_byte_of_a_stream_changes_and_none_is_without_a_row(framing: str, loaded: Field) -> None:
    seen = len(loaded.rows())
    for number, (name, (text, _)) in enumerate(ODD_STREAMS.items()):
        path = loaded.folder / f"stream{number}"
        path.write_bytes(text)
        wish = {"file": str(path), "type": "text/event-stream", "framing": framing, "sizes": [7, 1, 2]}
        call = loaded.chat("A", stream=True, stub=wish)
        assert (call.status, call.complete, call.body) == (200, True, text), name

    rows = loaded.rows(seen + len(ODD_STREAMS))[seen:]
    for row, (name, (_, tokens)) in zip(rows, ODD_STREAMS.items(), strict=True):
        assert row["resp_status_code"] == 200, name
        assert (row["tokens"]["input_tokens"], row["tokens"]["output_tokens"]) == tokens, name


def test_case_092_events_arrive_when_they_are_sent_also_when_they_are_metered(loaded: Field) -> None:
    call = loaded.chat("A", stream=True, stub={"tokens": 8, "gap": 0.05, "stamp": True})

    sent = [event["sent"] for event in call.events if isinstance(event, dict)]
    late = [arrived - at for at, arrived in zip(sent, call.client.arrivals, strict=False)]
    assert max(late[:8]) < 0.05


def test_case_092_a_stream_that_its_client_leaves_has_a_row_with_what_was_said(loaded: Field) -> None:
    seen = len(loaded.rows())
    call = loaded.send("A", stream=True, stub={"tokens": 200, "gap": 0.02})
    loaded.until(lambda: call.text, "its first words")
    call.leave("rst").wait()

    (row,) = loaded.rows(seen + 1)[seen:]
    assert row["resp_status_code"] == 200
    assert "left" in row["error_msg"]
    capture = loaded.get(f"/api/captures/{row['id']}").json
    assert json.loads(json.dumps(capture["resp_body"])), "what had come is kept"
