"""Serve `/comfyui/`: the short way to one model, by the rules of `llamaswap.web.comfyui`."""

from __future__ import annotations

from collections.abc import Callable

from llamaswap.calls.call import LOOKS
from llamaswap.calls.catalog import Catalog
from llamaswap.calls.resolution import Local
from llamaswap.config.models import COMFYUI
from llamaswap.http1.exchange import Exchange
from llamaswap.web.answers import redirect
from llamaswap.web.comfyui import to_front_page, upstream_target
from llamaswap.web.inference import Inference
from llamaswap.web.orders import Order, Parcel


class Shortcut:
    """Passes requests on to ComfyUI.

    Args:
        is_ready: whether a model's server answers now.
    """

    def __init__(self, catalog: Catalog, inference: Inference, is_ready: Callable[[str], bool]) -> None:
        self._model = catalog.models.get(COMFYUI)
        self._inference = inference
        self._is_ready = is_ready

    async def to_front_page(self, exchange: Exchange, _rest: bytes) -> None:
        """Answer `/comfyui`."""
        redirect(exchange, *to_front_page(exchange.head.method, exchange.head.query))

    async def pass_on(self, exchange: Exchange, rest: bytes) -> None:
        """Answer `/comfyui/<rest>`.

        Raises:
            NoComfyUI: there is no such model.
            NotLoaded: only the front page may start it.
        """
        model = self._model
        ready = model is not None and self._is_ready(model.id)
        target = upstream_target(rest, exchange.head.query, exists=model is not None, ready=ready)
        assert model is not None
        body = await exchange.body()
        order = Order(
            destination=Local(model),
            name=model.id,
            target=target,
            pack=lambda: Parcel(target=target, body=body),
            looks_only=exchange.head.method in LOOKS,
        )
        await self._inference.serve(exchange, order)
