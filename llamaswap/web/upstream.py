"""`/upstream/<model>/<rest>`: everything else that a model's server offers, by path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from urllib.parse import unquote_to_bytes

from llamaswap.calls.call import LOOKS, only_counts
from llamaswap.calls.resolution import Destination, Directory, Local
from llamaswap.calls.rewriting import rewrite_for_peer
from llamaswap.config.regexes import Expression, compile_re2
from llamaswap.errors import NotLoaded
from llamaswap.http1.body import Body
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.heads import RequestHead
from llamaswap.proxying.local import text
from llamaswap.proxying.reframing import reframed
from llamaswap.web.answers import redirect
from llamaswap.web.inference import Inference
from llamaswap.web.orders import Order, Parcel
from llamaswap.web.paths import check_stays, location, moved_for_good
from llamaswap.web.routes import Endpoint, Match, find_route


class Upstream:
    """Passes requests on to the model that their path names.

    Args:
        ignore_paths: patterns (searched, not anchored) of paths that may not start a model.
        is_ready: whether a model's server answers now.
    """

    def __init__(
        self,
        directory: Directory,
        inference: Inference,
        ignore_paths: Sequence[str],
        is_ready: Callable[[str], bool],
    ) -> None:
        self._directory = directory
        self._inference = inference
        self._ignore_paths = ignore_paths
        self._is_ready = is_ready

    async def pass_on(self, exchange: Exchange, rest: bytes) -> None:
        """Serve one request.

        Args:
            rest: the escaped path behind `/upstream/`.

        Raises:
            BadRequest: the path leads out of the model's place.
            ModelNotFound: the path begins with no model's name.
            NotLoaded: the path is one of those that may not start a model.
        """
        head = exchange.head
        placed = self._directory.resolve_path(unquote_to_bytes(rest).decode("utf-8", "replace"))
        path = remainder(rest, placed.name)
        if not path:
            place = b"/upstream/" + placed.requested.encode() + b"/"
            redirect(exchange, moved_for_good(head.method), location(place, head.query))
            return
        check_stays(path)
        destination = placed.destination
        if isinstance(destination, Local):
            self._check_ignored(destination.model.id, path)
        body = await exchange.body()
        query = b"" if head.query is None else b"?" + head.query

        def pack() -> Parcel:
            return Parcel(target=path + query, body=_for(destination, head, body))

        listed = _is_inference(head.method, path)
        await self._inference.serve(
            exchange,
            Order(
                destination=destination,
                name=destination.model.id if isinstance(destination, Local) else placed.requested,
                target=path + query,
                pack=pack,
                looks_only=head.method in LOOKS or only_counts(path.decode("latin-1")),
                row=listed and head.method == b"POST",
                listed=listed,
            ),
        )

    @cached_property
    def _ignored(self) -> Sequence[Expression]:
        return [compile_re2(pattern) for pattern in self._ignore_paths]

    def _check_ignored(self, model: str, path: bytes) -> None:
        decoded = unquote_to_bytes(path).decode("utf-8", "replace")
        if any(pattern.search(decoded) for pattern in self._ignored) and not self._is_ready(model):
            raise NotLoaded(f"model {model} is not loaded; path matches upstream.ignorePaths")


def _for(destination: Destination, head: RequestHead, body: Body) -> Body:
    """Return the body as the upstream shall get it: a peer does not know its qualified names."""
    if isinstance(destination, Local):
        return body
    return reframed(body, rewrite_for_peer(text(head.get(b"content-type")), body.decoded, destination))


def _is_inference(method: bytes, path: bytes) -> bool:
    """Return whether a request would be an inference call if it were asked of us directly."""
    route = find_route(method, path)
    return isinstance(route, Match) and route.route.endpoint is Endpoint.INFERENCE


def remainder(rest: bytes, name: str) -> bytes:
    """Return the still escaped path behind a model's name: b'' or something that begins with one slash."""
    at, wanted = 0, len(name.encode())
    decoded = 0
    while decoded < wanted:
        at += 3 if rest[at : at + 1] == b"%" else 1
        decoded += 1
    # The slash that ends the name may be escaped, too; what an upstream gets must begin with a plain one,
    # and with one only: `//host` would be somebody else's place.
    return b"/" + rest[at + 3 :].lstrip(b"/") if rest[at : at + 1] == b"%" else rest[at:]
