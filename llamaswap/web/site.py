"""The door: which endpoint answers a request, who may come in, and how refusals leave."""

from __future__ import annotations

from typing import Protocol

from llamaswap.errors import Refusal
from llamaswap.http1.exchange import ClientGone, Exchange
from llamaswap.web.accesslog import AccessLog
from llamaswap.web.answers import NO_SNIFFING, answer_text, redirect, refuse
from llamaswap.web.cors import preflight
from llamaswap.web.inference import Inference
from llamaswap.web.keys import Keyring
from llamaswap.web.paths import MOVED, check_path, moved
from llamaswap.web.routes import Endpoint, Match, Route, WrongMethod, find_route


class Desk(Protocol):
    """Answers every endpoint that is not an inference call."""

    async def answer(self, exchange: Exchange, endpoint: Endpoint, rest: bytes) -> None:
        """Answer one request; `rest` is the escaped tail of the path, where the route has one."""


class Site:
    """Answers every request of one generation."""

    def __init__(self, *, keyring: Keyring, inference: Inference, desk: Desk, access_log: AccessLog) -> None:
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
            await self._find(exchange)
        except Refusal as refusal:
            refuse(exchange, refusal)
        except ClientGone:
            pass  # before its request was complete: nobody waits for an answer

    async def _find(self, exchange: Exchange) -> None:
        """Send the request to its endpoint, or its client elsewhere."""
        head = exchange.head
        check_path(head.path)
        place = moved(head.method, head.path, head.query)
        if place is not None:
            redirect(exchange, MOVED, place)
            return
        found = find_route(head.method, head.path)
        if isinstance(found, Match):
            await self._serve(exchange, found.route, found.rest)
        elif isinstance(found, WrongMethod):
            allow = (b"Allow", found.allow)
            answer_text(exchange, "Method Not Allowed\n", status=405, headers=(NO_SNIFFING, allow))
        else:
            answer_text(exchange, "404 page not found\n", status=404, headers=(NO_SNIFFING,))

    async def _serve(self, exchange: Exchange, route: Route, rest: bytes) -> None:
        if not route.open:
            self._keyring.check(exchange.head)
        if route.endpoint is Endpoint.INFERENCE:
            await self._inference.infer(exchange, cut=route.cut, looks_only=route.looks_only)
        else:
            await self._desk.answer(exchange, route.endpoint, rest)
