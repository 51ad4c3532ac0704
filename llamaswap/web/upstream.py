"""`/upstream/<model>/<rest>`: everything else that a model's server offers, by path."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from urllib.parse import quote, unquote_to_bytes

from llamaswap.calls.catalog import Catalog
from llamaswap.config.regexes import compile_re2
from llamaswap.errors import ModelNotFound, NotLoaded
from llamaswap.http1.exchange import Exchange
from llamaswap.web.answers import redirect
from llamaswap.web.inference import Inference, Order
from llamaswap.web.routes import Endpoint, Match, find_route

_SAFE = "/:@!$&'()*+,;=~-._"


class Upstream:
    """Passes requests on to the model that their path names.

    Args:
        ignore_paths: patterns (searched, not anchored) of paths that may not start a model.
        is_ready: whether a model's server answers now.
    """

    def __init__(
        self,
        catalog: Catalog,
        inference: Inference,
        ignore_paths: Sequence[str],
        is_ready: Callable[[str], bool],
    ) -> None:
        self._catalog = catalog
        self._inference = inference
        self._ignored = [compile_re2(pattern) for pattern in ignore_paths]
        self._is_ready = is_ready

    async def pass_on(self, exchange: Exchange, rest: bytes) -> None:
        """Serve one request.

        Args:
            rest: the escaped path behind `/upstream/`.

        Raises:
            ModelNotFound: the path begins with no model's name.
            NotLoaded: the path is one of those that may not start a model.
        """
        found = self._catalog.find_in_path(unquote_to_bytes(rest).decode("utf-8", "replace"))
        if found is None:
            raise ModelNotFound
        model, name = found
        path = remainder(rest, name)
        query = b"" if exchange.head.query is None else b"?" + exchange.head.query
        if not path:
            place = b"/upstream/" + quote(name, safe=_SAFE).encode() + b"/" + query
            redirect(exchange, 301 if exchange.head.method in (b"GET", b"HEAD") else 308, place)
            return
        self._check_ignored(model.id, path)
        method = exchange.head.method
        route = find_route(method, path)
        inference = isinstance(route, Match) and route.route.endpoint is Endpoint.INFERENCE
        looks_only = method in (b"GET", b"HEAD") or _only_counts(path)
        order = Order(
            model=model,
            target=path + query,
            body=await exchange.body(),
            looks_only=looks_only,
            row=inference and method == b"POST",
        )
        await self._inference.serve(exchange, order)

    def _check_ignored(self, model: str, path: bytes) -> None:
        decoded = unquote_to_bytes(path).decode("utf-8", "replace")
        if any(pattern.search(decoded) for pattern in self._ignored) and not self._is_ready(model):
            raise NotLoaded(f"model {model} is not loaded; path matches upstream.ignorePaths")


def remainder(rest: bytes, name: str) -> bytes:
    """Return the still escaped path behind a model's name: b'' or something that begins with a slash."""
    at, wanted = 0, len(name.encode())
    decoded = 0
    while decoded < wanted:
        at += 3 if rest[at : at + 1] == b"%" else 1
        decoded += 1
    # The slash that ends the name may be escaped, too; what an upstream gets must begin with a plain one.
    return b"/" + rest[at + 3 :] if rest[at : at + 1] == b"%" else rest[at:]


def _only_counts(path: bytes) -> bool:
    """Return whether a call only counts or formats, wherever it is asked for."""
    return path.rsplit(b"/", 1)[-1] in (b"count_tokens", b"tokenize", b"detokenize", b"apply-template")
