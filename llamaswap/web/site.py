"""The door: which endpoint answers a request, who may come in, and how refusals leave."""

from __future__ import annotations

from twisted.logger import Logger

from llamaswap.errors import Refusal
from llamaswap.http1.exchange import ClientGone, Exchange
from llamaswap.web.answers import NO_SNIFFING, answer_text, refuse
from llamaswap.web.cors import preflight
from llamaswap.web.desk import Desk
from llamaswap.web.inference import Inference
from llamaswap.web.keys import Keyring
from llamaswap.web.logs import Logs
from llamaswap.web.routes import Endpoint, Match, WrongMethod, find_route
from llamaswap.web.upstream import Upstream


class Site:
    """Answers every request of one generation."""

    _log = Logger()

    def __init__(
        self, *, keyring: Keyring, inference: Inference, upstream: Upstream, desk: Desk, logs: Logs
    ) -> None:
        self._keyring = keyring
        self._inference = inference
        self._upstream = upstream
        self._desk = desk
        self._logs = logs

    async def handle(self, exchange: Exchange) -> None:
        """Answer one request; the handler of `llamaswap.http1.server.ServerFactory`."""
        head = exchange.head
        if head.method == b"OPTIONS":
            preflight(exchange)
            return
        found = find_route(head.method, head.path)
        if found is None:
            answer_text(exchange, "404 page not found\n", status=404, headers=(NO_SNIFFING,))
        elif isinstance(found, WrongMethod):
            allow = (b"Allow", found.allow)
            answer_text(exchange, "Method Not Allowed\n", status=405, headers=(NO_SNIFFING, allow))
        else:
            await self._answer(exchange, found)

    async def _answer(self, exchange: Exchange, found: Match) -> None:
        try:
            if not found.route.open:
                self._keyring.check(exchange.head)
            await self._serve(exchange, found)
        except Refusal as refusal:
            refuse(exchange, refusal)
        except ClientGone:
            pass  # before its request was complete: nobody waits for an answer

    async def _serve(self, exchange: Exchange, found: Match) -> None:
        route = found.route
        match route.endpoint:
            case Endpoint.INFERENCE:
                await self._inference.infer(exchange, cut=route.cut, looks_only=route.looks_only)
            case Endpoint.UPSTREAM:
                await self._upstream.pass_on(exchange, found.rest)
            case Endpoint.LOGS:
                self._logs.history(exchange)
            case Endpoint.LOG_STREAM:
                self._logs.stream(exchange, found.rest)
            case _:
                await self._desk.answer(exchange, route.endpoint, found.rest)
