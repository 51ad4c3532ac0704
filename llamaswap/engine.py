"""What runs models through every change of the configuration: fleet, dispatcher, counters.

A reload gives it another configuration; what runs and who waits stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from twisted.internet.defer import Deferred

from llamaswap.ceilings import Ceilings
from llamaswap.config.model import Config, ModelConfig, SchedulerName, SerialSettings
from llamaswap.dispatch import Dispatcher
from llamaswap.http1.client import Pool
from llamaswap.processes.child import ChildRunner
from llamaswap.processes.fleet import Changed, Fleet, Moved
from llamaswap.processes.health import Address, Prober
from llamaswap.processes.lifecycle import State
from llamaswap.processes.logbook import Logbook
from llamaswap.processes.server import ModelServer
from llamaswap.scheduling.estimates import Estimates
from llamaswap.scheduling.registry import make_scheduler
from llamaswap.scheduling.vocabulary import QueueView
from llamaswap.surroundings import DaemonReactor
from llamaswap.telemetry.loglines import Logbooks
from llamaswap.telemetry.metrics import Metrics


class Engine:
    """The servers of all models, and who may use them when.

    Args:
        config: the first one.
        children: starts processes; its owner closes it.
        pool: connections to the servers.
        books: the daemon's own logs; what models say goes there, too.
        memory_bytes: of the machine that nobody uses now; 0 where that is unknown.
    """

    def __init__(
        self,
        config: Config,
        *,
        reactor: DaemonReactor,
        children: ChildRunner,
        prober: Prober,
        pool: Pool,
        books: Logbooks,
        is_own: Callable[[Address], bool] = lambda _address: False,
        memory_bytes: int = 0,
    ) -> None:
        self._reactor = reactor
        self._children = children
        self._prober = prober
        self._pool = pool
        self._books = books
        self._is_own = is_own
        self.told: Callable[[str, str], None] = lambda _model, _state: None  # of each change of state
        self.model_books: dict[str, Logbook] = {}
        self.fleet = Fleet(self._server, self._changed)
        self.fleet.configure(config.models)
        self.metrics = Metrics(self.view, self.states, config.models, reactor.seconds)
        self.ceilings = Ceilings(config.limits, reactor, memory_bytes)
        self.ceilings.told = self.metrics.limit_reached
        self.estimates = Estimates()
        self.dispatcher = Dispatcher(
            make_scheduler(config, self.estimates),
            self.fleet,
            reactor,
            self.metrics,
            self.ceilings.waiting,
            estimates=self.estimates,
            settings=_serial_settings(config),
        )

    def reconfigure(self, config: Config) -> None:
        """Go on under another configuration: same queue, same places, same children where they fit."""
        self.ceilings.configure(config.limits)
        self.estimates.keep(config.models)
        scheduler = make_scheduler(config, self.estimates)
        self.dispatcher.suspend(config.models)
        try:
            self.fleet.configure(config.models)
            self.metrics.know(config.models)
        finally:  # or nobody would be served any more
            self.dispatcher.reconfigure(scheduler, _serial_settings(config))
        for name in self.model_books.keys() - self.fleet.keys():
            del self.model_books[name]

    def states(self) -> Mapping[str, str]:
        """Return the state of every configured model's process now, by id, sorted."""
        return self.fleet.states()

    def state(self, model: str) -> str:
        """Return the state of a model's process now; one that is not configured (any more) is stopped."""
        server = self.fleet.get(model)  # a call of an earlier configuration may still ask
        return State.STOPPED.value if server is None else server.state.value

    def is_ready(self, model: str) -> bool:
        """Return whether a model's server answers now."""
        return self.state(model) == State.READY

    def view(self) -> QueueView:
        """Return the scheduler's snapshot."""
        return self.dispatcher.view()

    def when_idle(self) -> Deferred[None]:
        """Return a Deferred that fires when no request holds a model any more."""
        return self.dispatcher.when_idle()

    async def end(self, grace: float) -> None:
        """Stop every child for good, each within `grace` seconds."""
        self.dispatcher.abandon_loads()
        self.dispatcher.refuse_the_rest()
        await self.fleet.shutdown(grace)

    def _server(self, model: ModelConfig, changed: Changed, moved: Moved) -> ModelServer:
        book = self.model_books[model.id] = Logbook()
        book.subscribe(self._books.upstream.append)
        return ModelServer(
            model,
            children=self._children,
            clock=self._reactor,
            prober=self._prober,
            logbook=book,
            changed=changed,
            may_expire=lambda name: not self.dispatcher.wanted(name),
            moved=moved,
            is_own=self._is_own,
        )

    def _changed(self, model: str, old: State, new: State) -> None:
        """A server that no longer answers keeps no connections, and is in doubt no more."""
        self.dispatcher.server_changed(model)
        if old is State.READY and model in self.fleet:
            address = self.fleet[model].address
            self._pool.forget(address.host, address.port)
        self.told(model, new.value)


def _serial_settings(config: Config) -> SerialSettings | None:
    return config.scheduler.serial if config.scheduler.use is SchedulerName.SERIAL else None
