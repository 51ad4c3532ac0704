"""Cases from the field: what bodies may look like on their way in and out."""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.field import MIB, Field, stub
from support.field_answers import expected
from support.field_call import CHAT, Call
from support.field_forms import Form, a_file
from support.field_scale import Scale
from support.real_daemon_talk import Wire, chat_body, json_fields, request_bytes
from support.real_sizes import forget_peak, peak

pytestmark = pytest.mark.integration

TRANSCRIPTIONS = "/v1/audio/transcriptions"
GZIP = {"Accept-Encoding": "gzip"}


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    """A model under two names, one that its server knows by another, and a second one for swaps."""
    models = {
        "A": stub(aliases=["nick"]),
        "B": stub(),
        "renamed": stub(useModelName="its own näme", vram=False),
    }
    folder = tmp_path_factory.mktemp("bodies")
    with Field(folder, models, spare_memory=24 * MIB) as field:
        yield field


def last(field: Field, event: str = "request") -> dict[str, Any]:
    """What stubs have noted last."""
    return field.records(event)[-1]


def digest(data: bytes) -> str:
    """As stubs and tests compare bodies."""
    return hashlib.sha256(data).hexdigest()


# --- what is asked -----------------------------------------------------------------------------------------

ODD_BODIES = [
    b'{"model":"A","priority":100,"messages":[]}',
    b' {\r\n"messages" : [ ] ,"priority":"interactive",\t"model": "\\u0041" } \n',
    b'{"x":1.00e+2,"model":"A","x":2,"big":123456789012345678901234567890}',
    '{"model":"A","ünï":"\U0001f600 \\ud83d\\ude00","n":null}'.encode(),
    b'\xef\xbb\xbf{"model":"A"}',
    b'{"model":"A","unended": [',
]


@pytest.mark.parametrize("body", ODD_BODIES, ids=range(len(ODD_BODIES)))
def test_case_050_the_header_goes_on_as_it_was_and_no_byte_of_the_body_changes_for_it(
    body: bytes, field: Field
) -> None:
    """The next server may be such a daemon, too.  A `priority` in the body is the model server's business."""
    assert field.chat("A", body=body, priority=" Batch ").status == 200

    note = last(field)
    assert note["sha256"] == digest(body)
    assert [value for name, value in note["headers"] if name.lower() == "x-llamaswap-priority"] == ["Batch"]
    assert field.rows()[-1]["metadata"]["serial_priority"] == "-100"


# --- gzip --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("path", [CHAT, "/v1/messages", "/completion"])
def test_case_073_a_compressed_answer_passes_as_it_is_and_is_counted(
    path: str, stream: bool, field: Field
) -> None:
    before = len(field.rows())
    plain = field.chat("A", path=path, stream=stream, stub={"tokens": 7})
    packed = field.chat("A", path=path, stream=stream, stub={"tokens": 7, "gzip": True}, headers=GZIP)

    assert plain.wrong() == ""
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.complete
    assert gzip.decompress(packed.body) == plain.body
    if not stream:
        assert packed.headers["content-length"] == str(len(packed.body))
    rows = field.rows(before + 2)[-2:]
    assert [row["tokens"]["output_tokens"] for row in rows] == [7, 7]


def test_case_073_a_client_that_does_not_take_gzip_is_not_sent_any(field: Field) -> None:
    for asked in ({}, {"Accept-Encoding": "identity"}, {"Accept-Encoding": "br, zstd"}):
        call = field.chat("A", stub={"gzip": True}, headers=asked)
        assert call.wrong() == ""
        assert "content-encoding" not in call.headers


@pytest.mark.parametrize("path", [CHAT, TRANSCRIPTIONS])
def test_case_073_a_compressed_request_finds_its_model_or_is_told_that_it_is_compressed(
    path: str, field: Field
) -> None:
    call = field.chat(
        "A", path=path, body=gzip.compress(chat_body("A")), headers={"Content-Encoding": "gzip"}
    )

    assert call.status in (200, 400, 415)
    if call.status != 200:
        assert "gzip" in call.json["error"]["message"]


# --- the habits of HTTP clients ----------------------------------------------------------------------------


def curl(field: Field, *words: str, body: bytes = b"", path: str = CHAT) -> tuple[bytes, bytes]:
    """Let curl ask; returns heads and body."""
    url = f"http://127.0.0.1:{field.daemon.port}{path}"
    command = ["curl", "-sS", "-i", "-m", "30", *words, "-H", "Content-Type: application/json", url]
    given = ["--data-binary", "@-"] if body else []
    answer = subprocess.run([*command, *given], input=body, capture_output=True, check=True).stdout
    head, _, rest = answer.rpartition(b"\r\n\r\n")
    return head, rest


def test_case_077_curl_says_expect_and_is_answered_in_the_version_that_it_speaks(field: Field) -> None:
    body = chat_body("A", filler="x" * 2 * MIB)

    head, answer = curl(field, body=body)
    assert head.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 ")
    assert json.loads(answer)["choices"][0]["message"]["content"] == expected(5)
    assert last(field)["sha256"] == digest(body)

    for stream in (False, True):
        head, answer = curl(field, "-0", body=chat_body("A", stream=stream))
        assert b"transfer-encoding" not in head.lower()
        assert head.count(b"HTTP/1.") == 1
        assert answer.startswith(b"data: {" if stream else b"{")


def test_case_077_chunks_arrive_whole_whatever_their_sizes_extensions_and_trailers(field: Field) -> None:
    body = chat_body("A", filler="é" * 3000)
    cut = [body[:1], body[1:4], body[4:2000], body[2000:]]
    chunks = b"".join(b'%x;note="a;b"\r\n%b\r\n' % (len(piece), piece) for piece in cut)
    fields = {**json_fields(), "Transfer-Encoding": "chunked", "Trailer": "X-Sum"}
    with Wire(field.daemon.port) as wire:
        wire.send(request_bytes("POST", CHAT, headers=fields) + chunks + b"0\r\nX-Sum: 1\r\n\r\n")
        assert wire.read_until(b"\r\n").startswith(b"HTTP/1.1 200 ")
        wire.read_until(b'"finish_reason": "stop"')
    assert last(field, "arrived")["sha256"] == digest(body)


def test_case_077_a_large_body_costs_less_than_twice_its_size(field: Field, scale: Scale) -> None:
    body = chat_body("A", image="0123456789abcdef" * scale(5 * MIB, MIB))
    assert field.chat("A").wrong() == ""
    before = forget_peak(field.daemon.pid)

    assert field.chat("A", body=body).wrong() == ""

    assert last(field)["sha256"] == digest(body)
    assert peak(field.daemon.pid) - before < 2 * len(body)


# --- forms -------------------------------------------------------------------------------------------------

BINARY = bytes(range(256)) * 300 + b"\r\n--\r\n\r\n--frontier\r\n"


def transcribe(field: Field, form: Form, model: str = "A") -> Call:
    """Send a form."""
    return field.chat(model, path=TRANSCRIPTIONS, body=form.body, headers={"Content-Type": form.content_type})


@pytest.mark.parametrize("boundary", ["frontier-1", "----WebKit=Form/Bound'ary", "a b:c?(d),e", "x" * 70])
@pytest.mark.parametrize("model", ["A", "nick"])
@pytest.mark.parametrize("last_is_model", [False, True], ids=["model first", "file first"])
def test_case_078_a_form_is_routed_by_its_model_wherever_that_stands_and_arrives_as_it_was(
    boundary: str, model: str, last_is_model: bool, field: Field
) -> None:
    parts = [("model", model), a_file("file", 'größe "x".wav', BINARY), ("language", "de")]
    form = Form(boundary, parts[::-1] if last_is_model else parts)

    heard = transcribe(field, form, model)

    assert heard.status == 200
    assert last(field)["sha256"] == digest(form.body)
    assert heard.json["text"] == digest(BINARY)
    assert heard.json["model"] == "A"
    assert heard.json["fields"] == {"model": model, "language": "de"}


def test_case_078_a_model_that_its_server_knows_by_another_name_changes_that_field_only(
    field: Field,
) -> None:
    parts = [a_file("file", "x.wav", BINARY), ("model", "renamed"), ("note", "renamed")]
    form = Form("frontier-2", parts)

    heard = transcribe(field, form, "renamed")

    assert heard.json["fields"] == {"model": "its own näme", "note": "renamed"}
    assert heard.json["text"] == digest(BINARY)
    wanted = Form("frontier-2", [parts[0], ("model", "its own näme"), parts[2]])
    assert last(field)["sha256"] == digest(wanted.body)


@pytest.mark.parametrize(
    "parts", [[a_file("file", "x.wav", BINARY)], [("model", "")], [a_file("model", "A", b"A")]]
)
def test_case_078_a_form_without_a_model_is_told_so(parts: list[Any], field: Field) -> None:
    """With 404, as llama-swap does; a file is no name."""
    call = transcribe(field, Form("frontier-3", parts))

    assert call.status == 404
    assert call.json["error"]["message"] == "no model id could be identified"


def test_case_078_a_long_recording_arrives_whole(field: Field, scale: Scale, tmp_path: Path) -> None:
    sound = BINARY * (scale(100 * MIB, 4 * MIB) // len(BINARY))

    heard = transcribe(field, Form("frontier-4", [a_file("file", "x.wav", sound), ("model", "A")]))

    assert heard.json["text"] == digest(sound)
