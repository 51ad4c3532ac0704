"""Which requests ask for a WebSocket, and which of them go past the queue.  Pure.

What an upgrade looks like on the wire, and how its bytes cross, is
`llamaswap.http1`'s part; every kind of upgrade crosses there alike.
"""

from __future__ import annotations

from llamaswap.config.model import ModelConfig
from llamaswap.errors import NotLoaded
from llamaswap.http1.heads import Headers, connection_tokens


def is_websocket(headers: Headers) -> bool:
    """Return whether a request asks for a WebSocket; both fields may be lists, in any case."""
    return b"upgrade" in connection_tokens(headers) and any(
        token.strip() == b"websocket"
        for name, value in headers
        if name.lower() == b"upgrade"
        for token in value.lower().split(b",")
    )


def goes_past_the_queue(headers: Headers, model: ModelConfig, *, ready: bool) -> bool:
    """Return whether a request is a WebSocket of a model that ignores them.

    Such a socket uses the model while it is there: it takes no ticket, counts
    for no limit, is no sign of life to the TTL, and loses its upstream when the
    model is swapped out.

    Args:
        ready: whether the model's server answers now.

    Raises:
        NotLoaded: it is one, and the model is not ready.
    """
    if not model.ignore_websockets or not is_websocket(headers):
        return False
    if not ready:
        raise NotLoaded(f"model {model.id} is not loaded; ignored websocket requests cannot start it")
    return True
