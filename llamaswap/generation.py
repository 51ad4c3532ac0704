"""One configuration's worth of live objects, wired here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from twisted.internet.defer import Deferred, DeferredList

from llamaswap.activity.journal import Journal, JournalReactor
from llamaswap.calls.catalog import Catalog
from llamaswap.chores import Chores
from llamaswap.config.model import Config
from llamaswap.dispatch import Dispatcher
from llamaswap.http1.client import ClientReactor, Pool
from llamaswap.http1.exchange import Exchange
from llamaswap.preload import preload
from llamaswap.processes.child import ChildRunner
from llamaswap.processes.health import Prober
from llamaswap.processes.lifecycle import State
from llamaswap.processes.logbook import Logbook
from llamaswap.processes.probing import ProbeReactor
from llamaswap.processes.server import ModelServer
from llamaswap.processes.spawning import ChildReactor
from llamaswap.proxying.local import LocalUpstream
from llamaswap.scheduling.registry import make_scheduler
from llamaswap.scheduling.vocabulary import QueueView
from llamaswap.telemetry.loglines import Logbooks
from llamaswap.telemetry.metrics import Metrics
from llamaswap.web.desk import Desk
from llamaswap.web.inference import Inference
from llamaswap.web.keys import Keyring
from llamaswap.web.logs import Logs
from llamaswap.web.site import Site
from llamaswap.web.upstream import Upstream


class DaemonReactor(ChildReactor, ProbeReactor, ClientReactor, JournalReactor):
    """What it takes to run the whole daemon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a generation takes from the service that it lives in; it outlives the generation."""

    reactor: DaemonReactor
    children: ChildRunner
    prober: Prober
    pool: Pool
    books: Logbooks
    journal: Journal
    wall: Callable[[], float]  # unix seconds


class Generation:
    """The fleet, its dispatcher and the site for one configuration.

    Args:
        config: what to wire.
        around: what outlives this generation.
    """

    def __init__(self, config: Config, around: Surroundings) -> None:
        self._around = around
        self._config = config
        self._chores = Chores()
        self._model_books = {model: Logbook() for model in config.models}
        self._fleet = {model: self._server(model) for model in config.models}
        self._metrics = Metrics(self._view, self.states, config.models)
        self._dispatcher = Dispatcher(make_scheduler(config), self._fleet, around.reactor, self._metrics)
        catalog = Catalog(config)
        self._logs = Logs(around.books, self._model_books, catalog)
        self._site = self._wire_site(catalog)

    async def handle(self, exchange: Exchange) -> None:
        """Answer one request."""
        await self._site.handle(exchange)

    def states(self) -> Mapping[str, str]:
        """Return the state of every model's process now, by model id, sorted."""
        return {model: server.state.value for model, server in self._fleet.items()}

    def pids(self) -> Mapping[str, int]:
        """Return the process ids of the running children, by model id."""
        reports = [server.report() for server in self._fleet.values()]
        return {report.model: report.pid for report in reports if report.pid is not None}

    def preload(self) -> None:
        """Queue up for the models that shall be loaded at start."""
        for model in self._config.preload:
            self._chores.start(f"preload {model}", preload(model, self._dispatcher, self._around.reactor))

    def refuse_new(self) -> None:
        """Refuse who waits and who comes; end the log streams."""
        self._dispatcher.close()
        self._logs.end_streams()

    def when_idle(self) -> Deferred[None]:
        """Return a Deferred that fires when no request holds a model any more."""
        return self._dispatcher.when_idle()

    async def end(self, grace: float) -> None:
        """Stop every child for good, each within `grace` seconds."""
        self._chores.cancel_all()
        self._dispatcher.abandon_loads()
        self._dispatcher.refuse_the_rest()
        await DeferredList([server.shutdown(grace) for server in self._fleet.values()])

    def _view(self) -> QueueView:
        return self._dispatcher.view()

    def _server(self, model: str) -> ModelServer:
        around, book = self._around, self._model_books[model]
        book.subscribe(around.books.upstream.append)
        return ModelServer(
            self._config.models[model],
            children=around.children,
            clock=around.reactor,
            prober=around.prober,
            logbook=book,
            changed=self._changed,
            may_expire=lambda name: not self._dispatcher.wanted(name),
        )

    def _changed(self, model: str, old: State, new: State) -> None:
        """A server that no longer answers keeps no connections, and is in doubt no more."""
        self._dispatcher.server_changed(model)
        if old is State.READY:
            address = self._fleet[model].address
            self._around.pool.forget(address.host, address.port)

    def _wire_site(self, catalog: Catalog) -> Site:
        config, around = self._config, self._around
        inference = Inference(
            catalog=catalog,
            dispatcher=self._dispatcher,
            upstream=LocalUpstream(around.pool),
            journal=around.journal,
            metrics=self._metrics,
            clock=around.reactor,
            wall=around.wall,
        )
        desk = Desk(
            config=config,
            catalog=catalog,
            dispatcher=self._dispatcher,
            journal=around.journal,
            metrics=self._metrics,
            states=self.states,
            wall=around.wall,
        )
        upstream = Upstream(catalog, inference, config.ignore_paths, self._is_ready)
        return Site(
            keyring=Keyring(config.api_keys),
            inference=inference,
            upstream=upstream,
            desk=desk,
            logs=self._logs,
        )

    def _is_ready(self, model: str) -> bool:
        return self._fleet[model].state is State.READY
