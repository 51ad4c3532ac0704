"""What a stub's answer has to look like, seen from the client's end of the daemon.

Pure: the bytes of an answer in, its words and its faults out.
"""

from __future__ import annotations

import json
import re
from typing import Any

DONE = "[DONE]"


def payloads(body: bytes) -> list[str]:
    """The data of each event of a stream; comments left out, an unfinished last event too."""
    found = []
    for block in re.split(r"\r?\n\r?\n", body.decode("utf-8", "replace"))[:-1]:
        data = [line[5:].removeprefix(" ") for line in block.splitlines() if line.startswith("data:")]
        if data:
            found.append("\n".join(data))
    return found


def events(body: bytes) -> list[Any]:
    """The same as JSON; the last one, that is none, as it is."""
    return [data if data == DONE else json.loads(data) for data in payloads(body)]


def words_of(answer: Any) -> str:
    """What the model says in an answer or an event, whichever API's it is."""
    if not isinstance(answer, dict):
        return ""
    said = [_choice(choice) for choice in answer.get("choices", [])]
    said += [part.get("text", "") for part in answer.get("content", []) if isinstance(part, dict)]
    said += [part["text"] for item in answer.get("output", []) for part in item.get("content", [])]
    plain, delta = answer.get("content", ""), answer.get("delta", "")
    said.append(plain if isinstance(plain, str) else "")
    said.append(delta if isinstance(delta, str) else str(delta.get("text", "")))
    return "".join(said)


def _choice(choice: dict[str, Any]) -> str:
    parts = (choice.get("delta"), choice.get("message"), {"content": choice.get("text")})
    return "".join(part.get("content") or "" for part in parts if part)


def text_of(content_type: str, body: bytes) -> str:
    """All that the model said; '' for an answer that is no model's, or not whole."""
    if content_type.startswith("text/event-stream"):
        return "".join(words_of(event) for event in events(body))
    try:
        return words_of(json.loads(body))
    except ValueError:
        return ""


def expected(tokens: int) -> str:
    """What a stub says that was asked for so many tokens."""
    return "".join(f"wörd{number} " for number in range(tokens))


def errors(content_type: str, body: bytes) -> list[Any]:
    """The errors that an answer or a stream tells of."""
    if content_type.startswith("text/event-stream"):
        told = events(body)
    elif content_type.startswith("application/json") and body:
        told = [json.loads(body)]
    else:
        told = []
    return [fact["error"] for fact in told if isinstance(fact, dict) and "error" in fact]
