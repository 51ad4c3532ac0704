"""Who sees an answer in passing."""

from __future__ import annotations

from llamaswap.http1.heads import ResponseHead
from llamaswap.metering.meter import Meter
from llamaswap.web.witness import Witness

HEAD = ResponseHead(200, b"OK", (1, 1), ((b"Content-TYPE", b"application/json"),))


def test_a_meter_sees_the_head_and_the_body_in_passing() -> None:
    meter = Meter(req_path="/v1/chat/completions")
    witness = Witness(meter, None, None)

    witness.head(HEAD)
    witness.data(b'{"usage":{"prompt_tokens":')
    witness.data(b"5}}")

    assert meter.finish().usage.input_tokens == 5


def test_nobody_needs_to_look() -> None:
    witness = Witness(None, None, None)

    witness.head(HEAD)
    witness.data(b"x")
    witness.refused(404, ())
