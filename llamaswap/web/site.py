"""The door: which endpoint answers a request, who may come in, and how refusals leave."""

from __future__ import annotations

from typing import Final, Protocol

from llamaswap.errors import LoopDetected, Refusal
from llamaswap.http1.exchange import ClientGone, Exchange
from llamaswap.http1.heads import RequestHead
from llamaswap.web.accesslog import AccessLog
from llamaswap.web.answers import NO_SNIFFING, answer_not_found, answer_text, redirect, refuse
from llamaswap.web.cors import preflight
from llamaswap.web.inference import Inference
from llamaswap.web.keys import Keyring
from llamaswap.web.paths import MOVED, check_path, moved
from llamaswap.web.routes import Endpoint, Match, WrongMethod, find_route

_INFERENCE: Final = Endpoint.INFERENCE  # looking a member up in its class takes as long as a call


class Desk(Protocol):
    """Answers every endpoint that is not an inference call."""

    async def answer(self, exchange: Exchange, endpoint: Endpoint, rest: bytes) -> None:
        """Answer one request; `rest` is the escaped tail of the path, where the route has one."""


class Site:
    """Answers every request of one generation.

    Args:
        mark: our name in Via.
    """

    def __init__(
        self,
        *,
        keyring: Keyring,
        inference: Inference,
        desk: Desk,
        access_log: AccessLog,
        mark: bytes = b"llamaswap",
    ) -> None:
        self._mark = mark
        self._keyring = keyring
        self._inference = inference
        self._desk = desk
        self._access_log = access_log

    async def handle(self, exchange: Exchange) -> None:
        """Answer one request; the handler of `llamaswap.http1.server.ServerFactory`."""
        self._access_log.watch(exchange)
        if exchange.head.method == b"OPTIONS":
            preflight(exchange)
            return
        try:
            way = exchange.head.derived("way", _way_in)
            if not isinstance(way, Match):
                _turn_away(exchange, way)
                return
            route = way.route
            if not route.open:
                self._keyring.check(exchange.head)
            if exchange.head.get(b"via") is not None:
                self._check_way(exchange.head)
            if route.endpoint is _INFERENCE:
                order = await self._inference.order(exchange, cut=route.cut, looks_only=route.looks_only)
                await self._inference.serve(exchange, order)
            else:
                await self._desk.answer(exchange, route.endpoint, way.rest)
        except Refusal as refusal:
            refuse(exchange, refusal)
        except ClientGone:
            pass  # before its request was complete: nobody waits for an answer

    def _check_way(self, head: RequestHead) -> None:
        """Refuse a request that we have sent to a peer before: it would go round for ever."""
        if any(self._mark in value for value in head.kin.values(b"via")):
            raise LoopDetected


def _way_in(head: RequestHead) -> Match | WrongMethod | bytes | None:
    """Return the endpoint of a request, where it should have gone instead, or None: nothing is there.

    Raises:
        BadRequest: its path cannot be decoded.
    """
    path = head.path
    check_path(path)
    return moved(head.method, path, head.query) or find_route(head.method, path)


def _turn_away(exchange: Exchange, way: WrongMethod | bytes | None) -> None:
    if isinstance(way, bytes):
        redirect(exchange, MOVED, way)
    elif way is None:
        answer_not_found(exchange)
    else:
        allow = (b"Allow", way.allow)
        answer_text(exchange, "Method Not Allowed\n", status=405, headers=(NO_SNIFFING, allow))
