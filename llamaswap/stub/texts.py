"""What the APIs of model servers look like when they answer at once.

Pure, and the same words each time: nothing in it comes from a clock or from chance.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from llamaswap.stub.options import Manner

PROMPT_TOKENS = 3
CREATED = 1_700_000_000  # a moment; any would do
MS_PER_TOKEN = 10.0

Facts = dict[str, Any]


def words(manner: Manner) -> list[str]:
    """The words of an answer, each with its space."""
    return [f"wörd{number} " for number in range(manner.tokens)]


def text(manner: Manner) -> str:
    """The whole of it."""
    return "".join(words(manner))


def usage(manner: Manner) -> Facts:
    """Tokens as OpenAI counts them; empty = nothing is said of them."""
    if manner.usage is not None:
        return manner.usage
    total = PROMPT_TOKENS + manner.tokens
    return {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": manner.tokens, "total_tokens": total}


def timings(manner: Manner) -> Facts:
    """What llama-server adds; empty = nothing."""
    if manner.timings is not None:
        return manner.timings
    return {
        "cache_n": 0,
        "prompt_n": PROMPT_TOKENS,
        "prompt_ms": PROMPT_TOKENS * MS_PER_TOKEN,
        "prompt_per_second": 1000.0 / MS_PER_TOKEN,
        "predicted_n": manner.tokens,
        "predicted_ms": manner.tokens * MS_PER_TOKEN,
        "predicted_per_second": 1000.0 / MS_PER_TOKEN,
    }


def counts(manner: Manner) -> Facts:
    """Usage and timings, as far as there are any."""
    both = {"usage": usage(manner), "timings": timings(manner)}
    return {name: value for name, value in both.items() if value}


def spent(manner: Manner) -> Facts:
    """Tokens as Anthropic and the Responses API count them; as given, if they were."""
    if manner.usage is not None:
        return manner.usage
    return {"input_tokens": PROMPT_TOKENS, "output_tokens": manner.tokens}


def chat(model: str, manner: Manner) -> Facts:
    """A chat completion."""
    message = {"role": "assistant", "content": text(manner)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return opened(model, "chat.completion") | {"choices": [choice]} | counts(manner)


def completion(model: str, manner: Manner) -> Facts:
    """A completion in OpenAI's old form."""
    choice = {"index": 0, "text": text(manner), "finish_reason": "stop"}
    return opened(model, "text_completion") | {"choices": [choice]} | counts(manner)


def opened(model: str, kind: str) -> Facts:
    """What OpenAI's objects begin with."""
    return {"id": "stub-1", "object": kind, "created": CREATED, "model": model}


def native(model: str, manner: Manner) -> Facts:
    """llama-server's own /completion and /infill."""
    numbers = {"tokens_predicted": manner.tokens, "tokens_evaluated": PROMPT_TOKENS}
    told = {"timings": timings(manner)} if timings(manner) else {}
    return {"content": text(manner), "stop": True, "model": model, **numbers, **told}


def message(model: str, manner: Manner) -> Facts:
    """A message as Anthropic answers."""
    content = [{"type": "text", "text": text(manner)}]
    head = {"id": "msg_stub", "type": "message", "role": "assistant", "model": model}
    tail = {"usage": spent(manner)} if spent(manner) else {}
    return {**head, "content": content, "stop_reason": "end_turn", "stop_sequence": None, **tail}


def response(model: str, manner: Manner) -> Facts:
    """An answer of the Responses API."""
    part = {"type": "output_text", "text": text(manner), "annotations": []}
    item = {
        "id": "item_stub",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    head = {"id": "resp_stub", "object": "response", "created_at": CREATED, "model": model}
    tail = {"usage": spent(manner)} if spent(manner) else {}
    return {**head, "status": "completed", "output": [item], **tail}


def embeddings(model: str, manner: Manner) -> Facts:
    """One vector."""
    row = {"object": "embedding", "index": 0, "embedding": [0.25, -0.5, 0.125]}
    used = {"prompt_tokens": PROMPT_TOKENS, "total_tokens": PROMPT_TOKENS}
    told = used if manner.usage is None else manner.usage
    return {"object": "list", "model": model, "data": [row], **({"usage": told} if told else {})}


def rerank(model: str, manner: Manner) -> Facts:
    """Every document is as good as any other."""
    return {
        "model": model,
        "object": "list",
        "results": [{"index": 0, "relevance_score": 0.5}],
        **counts(manner),
    }


WHOLE: dict[str, Callable[[str, Manner], Facts]] = {
    "/v1/chat/completions": chat,
    "/v1/completions": completion,
    "/completion": native,
    "/infill": native,
    "/v1/messages": message,
    "/v1/responses": response,
    "/v1/embeddings": embeddings,
    "/v1/rerank": rerank,
}
"""What answers which path."""


def models(alias: str) -> Facts:
    """The list of one model."""
    entry = {"id": alias, "object": "model", "created": CREATED, "owned_by": "stub"}
    return {"object": "list", "data": [entry]}


def props(alias: str) -> Facts:
    """llama-server's /props."""
    settings = {"n_ctx": 4096, "params": {"temperature": 0.8}}
    return {
        "default_generation_settings": settings,
        "total_slots": 1,
        "model_alias": alias,
        "model_path": alias,
    }


def slots() -> list[Facts]:
    """llama-server's /slots."""
    return [{"id": 0, "n_ctx": 4096, "is_processing": False}]


def error(status: int, words: str) -> Facts:
    """An error as llama-server words it."""
    kinds = {401: "authentication_error", 404: "not_found_error", 503: "unavailable_error"}
    return {"error": {"code": status, "message": words, "type": kinds.get(status, "server_error")}}


def digest(data: bytes) -> str:
    """SHA-256 of something, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
