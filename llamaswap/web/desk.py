"""The front desk: pages about the service itself, and the buttons that stop models."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import unquote_to_bytes

from twisted.logger import Logger

import llamaswap
from llamaswap.activity.journal import Journal, JournalClosed, StoreFailed
from llamaswap.activity.query import BadQuery, parse_query
from llamaswap.calls.catalog import Catalog
from llamaswap.calls.forms import query_field, query_pairs
from llamaswap.calls.profiles import ActiveProfile, requested_profile
from llamaswap.config.model import Config
from llamaswap.dispatch import Dispatcher
from llamaswap.errors import BadRequest, ModelNotFound, Refusal
from llamaswap.http1.exchange import Exchange
from llamaswap.metering.captures import Captures
from llamaswap.telemetry.bulletin import Bulletin
from llamaswap.telemetry.metrics import CONTENT_TYPE, Metrics
from llamaswap.telemetry.sampler import Sampler
from llamaswap.web.answers import answer_json, answer_not_found, answer_text, redirect
from llamaswap.web.captures import mark_captured
from llamaswap.web.links import page_at
from llamaswap.web.models import list_launches, list_models, list_running
from llamaswap.web.paths import HTML
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
        others: what answers the endpoints that are not about the service itself.
    """

    _log = Logger()

    def __init__(
        self,
        *,
        config: Config,
        catalog: Catalog,
        dispatcher: Dispatcher,
        journal: Journal,
        metrics: Metrics,
        profile: ActiveProfile,
        captures: Captures,
        bulletin: Bulletin,
        sampler: Sampler | None,
        states: Callable[[], Mapping[str, str]],
        wall: Callable[[], float],
        others: Mapping[Endpoint, Handler],
    ) -> None:
        self._config = config
        self._catalog = catalog
        self._dispatcher = dispatcher
        self._journal = journal
        self._metrics = metrics
        self._profile = profile
        self._captures = captures
        self._bulletin = bulletin
        self._sampler = sampler
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
            Endpoint.FAVICON: self._no_file,
            Endpoint.PROFILES: self._profiles,
            Endpoint.SWITCH_PROFILE: self._switch_profile,
            Endpoint.LAUNCHES: self._launches,
            **others,
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
        listed = list_models(self._config, self._states(), int(self._wall()), self._profile.pins)
        answer_json(exchange, listed, headers=headers)

    async def _running(self, exchange: Exchange, rest: bytes) -> None:
        answer_json(exchange, list_running(self._config, self._states()))

    async def _launches(self, exchange: Exchange, rest: bytes) -> None:
        answer_json(exchange, list_launches(self._config, self._states()))

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
        if not self._config.scheduler.configured:
            # Without `routing.scheduler` everything is as in llama-swap, whose metrics are the monitor's.
            if self._sampler is None:
                answer_text(exchange, "# performance monitor not available\n", status=503)
                return
            if self._sampler.latest() is None:
                exchange.respond(200, headers=((b"Content-Type", CONTENT_TYPE),))
                return
        exchange.respond(200, self._metrics.render(), headers=((b"Content-Type", CONTENT_TYPE),))

    async def _activity(self, exchange: Exchange, rest: bytes) -> None:
        try:
            page = await self._journal.page(parse_query(query_pairs(exchange.head.query)))
        except BadQuery as mistake:
            raise BadRequest(str(mistake)) from mistake
        except (StoreFailed, JournalClosed) as failed:
            raise ActivityUnavailable("failed to get activity") from failed
        mark_captured(page["data"], self._captures)
        answer_json(exchange, page)

    async def _stats(self, exchange: Exchange, rest: bytes) -> None:
        try:
            stats = await self._journal.stats(query_field(exchange.head.query, "model") or None)
        except (StoreFailed, JournalClosed) as failed:
            raise ActivityUnavailable("failed to get activity stats") from failed
        answer_json(exchange, stats)

    async def _root(self, exchange: Exchange, rest: bytes) -> None:
        redirect(exchange, 302, b"/ui" if exchange.head.path == b"/" else b"/ui/models")

    async def _no_file(self, exchange: Exchange, rest: bytes) -> None:
        answer_not_found(exchange)

    async def _profiles(self, exchange: Exchange, rest: bytes) -> None:
        answer_json(exchange, self._profile.listing())

    async def _switch_profile(self, exchange: Exchange, rest: bytes) -> None:
        body = await exchange.body()
        if self._profile.switch(requested_profile(body.decoded)):
            self._log.info("profiles.switched active={active}", active=self._profile.active or "none")
            self._bulletin.profile_changed()
        answer_json(exchange, self._profile.standing())

    async def _links(self, exchange: Exchange, rest: bytes) -> None:
        page = page_at(rest)
        if page is None:
            answer_not_found(exchange)
            return
        # A page of an older version, kept by a browser, would lead to what is no longer there.
        fresh = (b"Cache-Control", b"no-cache")
        exchange.respond(200, page, headers=(HTML, fresh))
