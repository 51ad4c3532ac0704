"""What a client says to a server on the loopback, one connection each time, and what it waits for.

Not made for measuring a proxy's own cost: `bench.native` is.
"""

from __future__ import annotations

import json
import re
import time
from http.client import HTTPConnection

from bench.launching import Failed

PATIENCE = 60.0  # seconds for anything
TOKENS = 4  # of an answer; only the first one counts
_CONTENT = re.compile(rb'"content":"[^"]')


def get(port: int, path: str) -> tuple[int, bytes]:
    """GET something on the loopback; returns status and body."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def first_token(port: int, model: str) -> float:
    """Ask for a stream and read it to its end.

    Returns:
        The monotonic moment of its first text.

    Raises:
        Failed: the answer is not a whole stream with a text in it.
    """
    question = {
        "model": model,
        "stream": True,
        "max_tokens": TOKENS,
        "messages": [{"role": "user", "content": "Say something."}],
    }
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(
            "POST", "/v1/chat/completions", json.dumps(question), {"Content-Type": "application/json"}
        )
        response = connection.getresponse()
        moment, last = 0.0, b""
        while line := response.readline():
            if not moment and has_text(line):
                moment = time.monotonic()
            last = line.strip() or last
    finally:
        connection.close()
    if response.status != 200 or not moment or last != b"data: [DONE]":
        raise Failed(f"no stream from port {port}: {response.status}, its last line: {last!r}")
    return moment


def has_text(line: bytes) -> bool:
    """Whether a line of a chat's stream brings text, and not only a role or an end."""
    return _CONTENT.search(line) is not None
