"""The front desk: pages about the service itself, and the buttons that stop models."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import parse_qsl, unquote_to_bytes

import llamaswap
from llamaswap.activity.journal import Journal, JournalClosed, StoreFailed
from llamaswap.activity.query import BadQuery, parse_query
from llamaswap.calls.catalog import Catalog
from llamaswap.calls.forms import query_field
from llamaswap.config.model import Config
from llamaswap.dispatch import Dispatcher
from llamaswap.errors import BadRequest, ModelNotFound, Refusal
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.heads import RequestHead
from llamaswap.telemetry.metrics import CONTENT_TYPE, Metrics
from llamaswap.web.answers import answer_json, answer_text, redirect
from llamaswap.web.links import LINKS_PAGE
from llamaswap.web.models import list_models, list_running
from llamaswap.web.routes import Endpoint


class ActivityUnavailable(Refusal):
    """The activity store does not answer."""

    status = 500


Handler = Callable[[Exchange, bytes], Awaitable[None]]


class Desk:
    """Answers what needs no model to run.

    Args:
        states: model id to state, now.
        wall: unix seconds.
    """

    def __init__(
        self,
        *,
        config: Config,
        catalog: Catalog,
        dispatcher: Dispatcher,
        journal: Journal,
        metrics: Metrics,
        states: Callable[[], Mapping[str, str]],
        wall: Callable[[], float],
    ) -> None:
        self._config = config
        self._catalog = catalog
        self._dispatcher = dispatcher
        self._journal = journal
        self._metrics = metrics
        self._states = states
        self._wall = wall
        self._handlers: Mapping[Endpoint, Handler] = {
            Endpoint.HEALTH: self._health,
            Endpoint.VERSION: self._version,
            Endpoint.MODELS: self._models,
            Endpoint.RUNNING: self._running,
            Endpoint.UNLOAD_ALL: self._unload_all,
            Endpoint.UNLOAD_ALL_JSON: self._unload_all_json,
            Endpoint.UNLOAD_ONE: self._unload_one,
            Endpoint.METRICS: self._show_metrics,
            Endpoint.ACTIVITY: self._activity,
            Endpoint.STATS: self._stats,
            Endpoint.ROOT: self._root,
            Endpoint.LINKS: self._links,
        }

    async def answer(self, exchange: Exchange, endpoint: Endpoint, rest: bytes) -> None:
        """Answer one request.

        Args:
            rest: the escaped tail of the path, where the route has one.
        """
        await self._handlers[endpoint](exchange, rest)

    async def _health(self, exchange: Exchange, rest: bytes) -> None:
        answer_text(exchange, "OK")

    async def _version(self, exchange: Exchange, rest: bytes) -> None:
        version = {"version": llamaswap.__version__, "commit": "unknown", "build_date": "unknown"}
        answer_json(exchange, version)

    async def _models(self, exchange: Exchange, rest: bytes) -> None:
        origin = exchange.head.get(b"origin")
        headers = ((b"Access-Control-Allow-Origin", origin),) if origin else ()
        listed = list_models(self._config, self._states(), int(self._wall()))
        answer_json(exchange, listed, headers=headers)

    async def _running(self, exchange: Exchange, rest: bytes) -> None:
        answer_json(exchange, list_running(self._config, self._states()))

    async def _unload_all(self, exchange: Exchange, rest: bytes) -> None:
        await self._dispatcher.unload(frozenset(self._config.models))
        answer_text(exchange, "OK")

    async def _unload_all_json(self, exchange: Exchange, rest: bytes) -> None:
        await self._dispatcher.unload(frozenset(self._config.models))
        answer_json(exchange, {"msg": "ok"})

    async def _unload_one(self, exchange: Exchange, rest: bytes) -> None:
        model = self._catalog.find(unquote_to_bytes(rest).decode("utf-8", "replace"))
        if model is None:
            raise ModelNotFound
        await self._dispatcher.unload(frozenset({model.id}))
        answer_text(exchange, "OK")

    async def _show_metrics(self, exchange: Exchange, rest: bytes) -> None:
        exchange.respond(200, self._metrics.render(), headers=((b"Content-Type", CONTENT_TYPE),))

    async def _activity(self, exchange: Exchange, rest: bytes) -> None:
        try:
            page = await self._journal.page(parse_query(_pairs(exchange.head)))
        except BadQuery as mistake:
            raise BadRequest(str(mistake)) from mistake
        except (StoreFailed, JournalClosed) as failed:
            raise ActivityUnavailable("failed to get activity") from failed
        answer_json(exchange, page)

    async def _stats(self, exchange: Exchange, rest: bytes) -> None:
        try:
            stats = await self._journal.stats(query_field(exchange.head.query, "model") or None)
        except (StoreFailed, JournalClosed) as failed:
            raise ActivityUnavailable("failed to get activity stats") from failed
        answer_json(exchange, stats)

    async def _root(self, exchange: Exchange, rest: bytes) -> None:
        redirect(exchange, 302, b"/ui/")

    async def _links(self, exchange: Exchange, rest: bytes) -> None:
        exchange.respond(200, LINKS_PAGE, headers=((b"Content-Type", b"text/html; charset=utf-8"),))


def _pairs(head: RequestHead) -> list[tuple[str, str]]:
    return parse_qsl((head.query or b"").decode("utf-8", "replace"), keep_blank_values=True)
