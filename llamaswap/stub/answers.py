"""Which request gets which answer.

Pure but for `file`, whose content a request may ask for.  When anything is
sent, and in what pieces, is the server's business.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from llamaswap.stub import events, forms, replies, texts
from llamaswap.stub.options import Manner, Options, wished
from llamaswap.stub.replies import Reply
from llamaswap.stub.wire import Request

HEALTH = "/health"
FORMS = ("/v1/audio/transcriptions", "/v1/audio/translations")


def at_the_door(request: Request, options: Options, *, ready: bool) -> Reply | None:
    """The answer to who isn't let in, or only asks how things are; None = let it in."""
    doors, health = options.doors, request.path == HEALTH
    wrong_key = doors.key is not None and request.get("authorization") != f"Bearer {doors.key}"
    if wrong_key and not (health and doors.key_but_health):
        return refusal(401, "Invalid API key")
    if not ready:
        return refusal(503, "Loading model")
    if health:
        code = options.health.code
        return replies.of_json({"status": "ok"}) if code == 200 else refusal(code, "as asked for")
    if doors.only and request.path not in doors.only:
        return refusal(404, "File Not Found")
    told = about_itself(request, options.alias)
    return None if told is None else replies.of_json(told)


def about_itself(request: Request, alias: str) -> Any:
    """What it says of itself; None = that was not the question."""
    if request.method not in ("GET", "HEAD"):
        return None
    if request.path in ("/v1/models", "/models"):
        return texts.models(alias)
    return {"/props": texts.props(alias), "/slots": texts.slots()}.get(request.path)


def refusal(status: int, words: str) -> Reply:
    """An error."""
    return replies.of_json(texts.error(status, words), status)


def manner_of(request: Request, options: Options) -> Manner:
    """How this request shall be answered.

    Raises:
        ValueError: its `X-Stub` makes no sense.
    """
    return wished(options.manner, json.loads(request.get("x-stub") or "{}"))


def asked(request: Request) -> dict[str, Any]:
    """The JSON object of its body; empty if it has none."""
    try:
        facts = json.loads(request.plain)
    except (ValueError, OSError, EOFError):
        return {}
    return facts if isinstance(facts, dict) else {}


def model_of(request: Request, alias: str) -> str:
    """The model that it asks for: what an answer calls itself."""
    form = forms.read_form(request.get("content-type"), request.body) if request.path in FORMS else None
    named = form.fields.get("model") if form is not None else asked(request).get("model")
    return named if isinstance(named, str) else alias


def stream(request: Request, alias: str, manner: Manner) -> Iterator[events.Event] | None:
    """The events that it gets; None = it gets a whole answer."""
    make = events.STREAMED.get(request.path)
    if make is None or request.method != "POST" or asked(request).get("stream") is not True:
        return None
    if manner.status != 200 or manner.fill is not None or manner.file is not None:
        return None
    return _with_more(make(model_of(request, alias), manner), manner)


def _with_more(usual: Iterator[events.Event], manner: Manner) -> Iterator[events.Event]:
    if manner.big_line:
        yield events.big_event(manner.big_line, manner)
    yield from usual


def whole(request: Request, alias: str, manner: Manner) -> Reply:
    """The whole answer that it gets."""
    reply = _in_its_form(request, alias, manner)
    more = manner.headers + (() if manner.cors is None else (("Access-Control-Allow-Origin", manner.cors),))
    reply = Reply(status=manner.status, body=reply.body, type=manner.type or reply.type, headers=more)
    return replies.packed(reply) if manner.gzip and "gzip" in request.get("accept-encoding") else reply


def _in_its_form(request: Request, alias: str, manner: Manner) -> Reply:
    if manner.file is not None:
        return Reply(body=Path(manner.file).read_bytes())
    if manner.fill is not None:
        return Reply(body=bytes(manner.fill), type="application/octet-stream")
    make = texts.WHOLE.get(request.path) if request.method == "POST" else None
    if make is None:
        return replies.of_json(heard(request, alias) if request.path in FORMS else echo(request, alias))
    if manner.status >= 400:
        return refusal(manner.status, "as asked for")
    return replies.of_json(make(model_of(request, alias), manner))


def heard(request: Request, alias: str) -> dict[str, Any]:
    """What an audio form brought; the text is the hash of its file."""
    form = forms.read_form(request.get("content-type"), request.body)
    first = next(iter(form.files.values()), {})
    return {"text": first.get("sha256", ""), "model": alias, "fields": form.fields, "files": form.files}


def echo(request: Request, alias: str) -> dict[str, Any]:
    """What came."""
    return {
        "model": alias,
        "method": request.method,
        "path": request.path,
        "target": request.target,
        "headers": [list(pair) for pair in request.headers],
        "size_bytes": len(request.body),
        "sha256": texts.digest(request.body),
    }
