"""`/comfyui/`: a short way to one model, which only its front page may start.  Pure.

Decides what a request becomes; does not know how it is queued or passed on.
"""

from __future__ import annotations

from llamaswap.config.models import COMFYUI
from llamaswap.errors import NotLoaded, Refusal
from llamaswap.web.paths import check_stays, location, moved_for_good


class NoComfyUI(Refusal):
    """No local model has the id that `/comfyui/` stands for; an alias or a peer's model does not count."""

    status = 404

    def __init__(self) -> None:
        super().__init__(f"local model {COMFYUI} not found")


def to_front_page(method: bytes, query: bytes | None) -> tuple[int, bytes]:
    """Return status and Location for a request of `/comfyui` itself, whether the model exists or not."""
    return moved_for_good(method), location(b"/comfyui/", query)


def upstream_target(rest: bytes, query: bytes | None, *, exists: bool, ready: bool) -> bytes:
    """Return the path and query that the model's server shall see, escapes as they came.

    Args:
        rest: the escaped path behind `/comfyui/`.
        query: None where the target has no `?`; an empty one keeps it.
        exists: whether a local model has exactly this id.
        ready: whether its server answers now; one that is starting does not.

    Raises:
        BadRequest: the path leads out of the model's place.
        NoComfyUI: there is no such model.
        NotLoaded: it does not run, and only the front page may start it.
    """
    if not exists:
        raise NoComfyUI
    if rest and not ready:
        raise NotLoaded(f"model {COMFYUI} is not loaded; only /comfyui/ can start it")
    check_stays(rest)
    return b"/" + rest + (b"" if query is None else b"?" + query)
