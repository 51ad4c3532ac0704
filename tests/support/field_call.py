"""One request of a case, from its sending to what became of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from support.field_answers import DONE, errors, events, expected, text_of
from support.field_client import PATIENCE, Client, Leave
from support.real_daemon_talk import json_fields, request_bytes

CHAT = "/v1/chat/completions"


class Call:
    """A request; `wait` ends it, the rest asks what became of it.

    Args:
        client: what sends it.
        model: whom it is for.
        stream: whether it asked for a stream.

    Attributes:
        excuse: what the summary says of its loss, in a case that is about it; '' = it must not be lost.
    """

    def __init__(self, client: Client, model: str, *, stream: bool) -> None:
        self.excuse = ""
        self.client = client
        self.model = model
        self.stream = stream

    def wait(self, deadline: float = PATIENCE) -> Call:
        """Wait until it is over, in whatever way; returns itself."""
        self.client.wait(deadline)
        return self

    def leave(self, how: Leave = "fin", after: float = 0.0) -> Call:
        """Leave `after` seconds from now: `fin`, `rst`, or `half`, which goes on reading; returns itself."""
        self.client.leave(how, after)
        return self

    @property
    def over(self) -> bool:
        """Whether nothing more comes of it."""
        return self.client.is_over

    @property
    def ok(self) -> bool:
        """200, and the whole body of a stub: every word, and `[DONE]` at the end of a chat's stream."""
        return not self.wrong()

    def wrong(self) -> str:
        """What keeps it from being ok; '' = nothing."""
        if not self.client.complete or self.client.status != 200:
            return str(self.client)
        words = self.text.split()
        if not words or self.text != expected(len(words)):
            return f"odd words: {self.client}"
        if self.stream and self.client.name.startswith(CHAT) and self.events[-1] != DONE:
            return f"no [DONE]: {self.client}"
        return f"an error in it: {self.client}" if self.errors else ""

    @property
    def status(self) -> int:
        """Of its answer; 0 = none came."""
        return self.client.status

    @property
    def complete(self) -> bool:
        """Whether the whole answer came, by its own frame."""
        return self.client.complete

    @property
    def took(self) -> float:
        """Seconds from its sending to its end."""
        assert self.client.end is not None, f"it is under way: {self.client}"
        return self.client.end - self.client.sent

    @property
    def body(self) -> bytes:
        """What came of the body so far."""
        return bytes(self.client.body)

    @property
    def headers(self) -> Mapping[str, str]:
        """Of the answer; names in lower case."""
        return self.client.headers

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The data of each event so far."""
        return events(self.body)

    @property
    def text(self) -> str:
        """All that the model said so far."""
        return text_of(self._type, self.body)

    @property
    def errors(self) -> list[Any]:
        """The errors that the answer or its stream tells of."""
        return errors(self._type, self.body)

    @property
    def _type(self) -> str:
        return self.client.headers.get("content-type", "")

    @override
    def __repr__(self) -> str:
        return f"Call({self.client})"


def request_for(
    model: str,
    *,
    priority: str | None = None,
    stream: bool = False,
    stub: Mapping[str, Any] | None = None,
    tag: str = "",
    path: str = CHAT,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    **more: Any,
) -> bytes:
    """A request as it goes over the wire.

    Args:
        priority: the value of `X-LlamaSwap-Priority`; None = no such field.
        stub: how the stub shall answer it: `llamaswap.stub.options.Manner`.
        tag: `X-Tag`, by which the stubs' record tells it from others.
        headers: more fields.
        body: instead of the usual JSON.
        more: keys of that JSON.
    """
    asked = {"model": model, "messages": [{"role": "user", "content": "hi"}], "stream": stream, **more}
    content = json.dumps(asked).encode() if body is None else body
    return request_bytes("POST", path, content, {**json_fields(priority, stub, tag), **(headers or {})})
