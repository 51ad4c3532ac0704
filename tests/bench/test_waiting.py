"""The waiting clients of the bench: what they say."""

from __future__ import annotations

import json

from bench.waiting import BODY_BYTES, chat_request


def test_a_request_has_a_body_of_the_size_that_is_claimed() -> None:
    for model in ("m", "a-model-with-a-long-name"):
        head, _, body = chat_request(model).partition(b"\r\n\r\n")

        assert len(body) == BODY_BYTES
        assert b"Content-Length: 300" in head
        assert json.loads(body)["model"] == model
