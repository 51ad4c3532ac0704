"""One configuration's worth of live objects, wired here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from random import Random
from typing import Any

from llamaswap.calls.catalog import Catalog
from llamaswap.calls.profiles import ActiveProfile
from llamaswap.calls.resolution import make_directory
from llamaswap.config.model import Config
from llamaswap.engine import Engine
from llamaswap.http1.client import Pool
from llamaswap.http1.exchange import Exchange
from llamaswap.proxying.local import LocalUpstream
from llamaswap.proxying.peer import PeerUpstream
from llamaswap.surroundings import Surroundings
from llamaswap.telemetry.bulletin import Board, Bulletin
from llamaswap.web.accesslog import AccessLog
from llamaswap.web.captures import show_capture
from llamaswap.web.desk import Desk, Handler
from llamaswap.web.events import Events, model_rows
from llamaswap.web.guestbook import GuestBook
from llamaswap.web.hardware import show_hardware
from llamaswap.web.inference import Inference
from llamaswap.web.inflight import cancel_flight
from llamaswap.web.keys import Keyring
from llamaswap.web.logs import Logs
from llamaswap.web.performance import show_performance
from llamaswap.web.queue import QueuePages
from llamaswap.web.readers import Readers
from llamaswap.web.routes import Endpoint
from llamaswap.web.shortcut import Shortcut
from llamaswap.web.site import Site
from llamaswap.web.standing import Standings
from llamaswap.web.turns import Turns
from llamaswap.web.upstream import Upstream


class Generation:
    """The site for one configuration, in front of an engine that outlives it.

    Args:
        config: what to wire.
        engine: runs the models; already configured.
        pool: connections to local servers.
        around: what outlives this generation.
    """

    def __init__(self, config: Config, engine: Engine, pool: Pool, around: Surroundings) -> None:
        self._config = config
        self._engine = engine
        self._around = around
        self._catalog = Catalog(config)
        self._profile = ActiveProfile(config.profiles)
        self._peers = PeerUpstream(
            around.reactor,
            config.peers,
            mark=around.mark,
            abroad=around.abroad,
            high_water=config.limits.slow_client,
        )
        self._directory = make_directory(config, self._profile, engine.state)
        self._bulletin = Bulletin(self._board(), around.reactor)
        readers = Readers(engine.ceilings.readers)
        self._keyring = Keyring(config.api_keys, config.priorities.callers)
        self._events = Events(self._bulletin, readers)
        self._logs = Logs(around.books, engine.model_books, self._catalog, readers)
        inference = self._inference(pool)
        self._site = Site(
            keyring=self._keyring,
            inference=inference,
            desk=self._desk(self._endpoints(inference)),
            access_log=AccessLog(around.reactor, around.lines),
            mark=around.mark,
        )

    def handle(self, exchange: Exchange) -> Coroutine[Any, Any, None]:
        """Return what answers one request."""
        return self._site.handle(exchange)

    def state_changed(self, model: str, state: str) -> None:
        """The process of a model has come into this state."""
        self._bulletin.state_changed(model, state)

    def queue_changed(self) -> None:
        """Somebody waits, goes or has ended, or may have."""
        self._bulletin.queue_changed()

    def row_written(self, row_id: int) -> None:
        """An activity row can be read, its capture included."""
        self._bulletin.row_written(row_id)

    def end_streams(self) -> None:
        """Finish the event and log streams; whoever reads them has to ask again."""
        self._events.end_streams()
        self._logs.end_streams()

    def end(self) -> None:
        """Take on nothing new; what is under way ends by itself."""
        self.end_streams()
        self._peers.close()

    def _board(self) -> Board:
        around = self._around
        return Board(
            proxy=around.books.proxy,
            upstream=around.books.upstream,
            models=lambda changed: model_rows(self._config, {**self._engine.states(), **changed}),
            session_headers=self._config.session_headers,
            profile=lambda: self._profile.active,
            inflight=around.inflight,
            queue=self._engine.view,
        )

    def _inference(self, pool: Pool) -> Inference:
        around, engine = self._around, self._engine
        guests = GuestBook(
            journal=around.journal,
            captures=around.captures,
            inflight=around.inflight,
            metrics=engine.metrics,
            clock=around.reactor,
            wall=around.wall,
        )
        standings = Standings(self._keyring, self._config.priorities)
        turns = Turns(
            dispatcher=engine.dispatcher,
            server_of=engine.fleet.get,
            upstream=LocalUpstream(pool, high_water=self._config.limits.slow_client),
            metrics=engine.metrics,
            standings=standings,
            keep_alive=self._config.keep_alive,
            clock=around.reactor,
            dice=Random(),  # noqa: S311 - it chooses remarks, not secrets
        )
        return Inference(
            directory=self._directory,
            turns=turns,
            peers=self._peers,
            guests=guests,
            standings=standings,
            clock=around.reactor,
        )

    def _endpoints(self, inference: Inference) -> Mapping[Endpoint, Handler]:
        """Return what answers the endpoints that are not about the service itself."""
        around, is_ready = self._around, self._engine.is_ready
        pages = QueuePages(self._engine.dispatcher.queueing, self._keyring, around.wall)
        upstream = Upstream(self._directory, inference, self._config.ignore_paths, is_ready)
        shortcut = Shortcut(self._catalog, inference, is_ready)
        return {
            Endpoint.UPSTREAM: upstream.pass_on,
            Endpoint.COMFYUI: shortcut.pass_on,
            Endpoint.COMFYUI_PAGE: shortcut.to_front_page,
            Endpoint.LOGS: _at_once(lambda exchange, _rest: self._logs.history(exchange)),
            Endpoint.LOG_STREAM: _at_once(self._logs.stream),
            Endpoint.EVENTS: _at_once(lambda exchange, _rest: self._events.stream(exchange)),
            Endpoint.CAPTURE: _at_once(lambda exchange, rest: show_capture(exchange, around.captures, rest)),
            Endpoint.CANCEL: _at_once(
                lambda exchange, rest: cancel_flight(exchange, around.inflight, self._keyring, rest)
            ),
            Endpoint.PERFORMANCE: _at_once(
                lambda exchange, _rest: show_performance(exchange, around.sampler)
            ),
            Endpoint.HARDWARE: lambda exchange, _rest: show_hardware(exchange, around.hardware),
            Endpoint.QUEUE: pages.show,
            Endpoint.TICKET: pages.show_one,
            Endpoint.MOVE_TICKET: pages.reprioritise,
            Endpoint.CANCEL_TICKET: pages.cancel,
            Endpoint.PAUSE: pages.pause,
            Endpoint.RESUME: pages.resume,
        }

    def _desk(self, others: Mapping[Endpoint, Handler]) -> Desk:
        return Desk(
            config=self._config,
            catalog=self._catalog,
            dispatcher=self._engine.dispatcher,
            journal=self._around.journal,
            metrics=self._engine.metrics,
            profile=self._profile,
            captures=self._around.captures,
            bulletin=self._bulletin,
            sampler=self._around.sampler,
            states=self._engine.states,
            wall=self._around.wall,
            others=others,
        )


def _at_once(answer: Callable[[Exchange, bytes], None]) -> Handler:
    """Return a handler for what needs no waiting."""

    async def handle(exchange: Exchange, rest: bytes) -> None:
        answer(exchange, rest)

    return handle
