"""Load the models of `hooks.on_startup.preload`, one after the other, in list order."""

from __future__ import annotations

from collections.abc import Iterable

import treq
from treq.client import HTTPClient
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as NoAnswer
from twisted.internet.error import ConnectError, ConnectionClosed
from twisted.internet.error import TimeoutError as ConnectTimeout
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.web.client import Agent, ResponseFailed, ResponseNeverReceived

from llamaswap.chores import Chores
from llamaswap.dispatch import Dispatcher
from llamaswap.errors import Refusal
from llamaswap.leases import Abandoned, Lease
from llamaswap.processes.health import Address

PRIORITY = 0
GREETING_SECONDS = 10.0
"""How long a freshly loaded model may take to answer `GET /`, which warms nothing and proves little."""

_log = Logger()


class Preloads:
    """The preloads under way; a reload does not touch them.

    Args:
        dispatcher: gives out the box.
        reactor: connects to models, to greet them.
    """

    def __init__(self, dispatcher: Dispatcher, reactor: IReactorTime) -> None:
        self._dispatcher = dispatcher
        self._reactor = reactor
        self._chores = Chores()

    def begin(self, models: Iterable[str]) -> None:
        """Queue up for these models, in this order."""
        for model in models:
            self._chores.start(f"preload {model}", preload(model, self._dispatcher, self._reactor))

    def end(self) -> None:
        """Leave the queue."""
        self._chores.cancel_all()


async def preload(model: str, dispatcher: Dispatcher, reactor: IReactorTime) -> None:
    """Wait for the box like any request of priority 0, then greet the model once.

    llama-swap preloads with a `GET /` through its proxy, so an upstream may
    count on seeing one.  What it answers does not matter: the model is loaded.
    """
    try:
        async with dispatcher.lease(model, PRIORITY) as lease:
            await _greet(lease, reactor)
            _log.info("preload.loaded model={model} seconds={load:.1f}", model=model, load=lease.load)
    except Refusal as refusal:
        _log.error("preload.failed model={model} why={why}", model=model, why=refusal.message)
    except Abandoned as gone:
        raise CancelledError from gone


async def _greet(lease: Lease, reactor: IReactorTime) -> None:
    client = HTTPClient(Agent(reactor, connectTimeout=GREETING_SECONDS))
    greeting = Deferred.fromCoroutine(_ask(client, _root_of(lease.server.address)))
    try:
        await greeting.addTimeout(GREETING_SECONDS, reactor)
    except (
        ConnectError,
        ConnectionClosed,
        ConnectTimeout,
        NoAnswer,
        ResponseFailed,
        ResponseNeverReceived,
    ) as error:
        _log.warn(
            "preload.greeting_failed model={model} why={why}", model=lease.server.model.id, why=str(error)
        )


async def _ask(client: HTTPClient, url: str) -> None:
    await treq.content(await client.get(url))


def _root_of(address: Address) -> str:
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"http://{host}:{address.port}{address.base_path}/"
