"""Load the models of `hooks.on_startup.preload`, one after the other, in list order."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from llamaswap.chores import Chores
from llamaswap.dispatch import Dispatcher
from llamaswap.errors import Refusal
from llamaswap.leases import Abandoned

PRIORITY = 0

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
        self._ended = False

    def begin(self, models: Iterable[str], *, in_turn: bool = False) -> None:
        """Queue up for these models, in this order.

        Args:
            in_turn: queue up for each when the one before it is loaded, or could not be.  A scheduler that
                runs jobs side by side would load them all at once otherwise.
        """
        if in_turn:
            self._chores.start("preloads", self._one_by_one(tuple(models)))
            return
        for model in models:
            self._chores.start(f"preload {model}", preload(model, self._dispatcher, self._reactor))

    def end(self) -> None:
        """Leave the queue."""
        self._ended = True
        self._chores.cancel_all()

    async def _one_by_one(self, models: Iterable[str]) -> None:
        for model in models:
            with suppress(CancelledError):  # somebody may have sent this one away, and not the others
                await preload(model, self._dispatcher, self._reactor)
            if self._ended:
                raise CancelledError


async def preload(model: str, dispatcher: Dispatcher, reactor: IReactorTime) -> None:
    """Wait for the box like any request of priority 0, then greet the model once.

    llama-swap preloads with a `GET /` through its proxy, so an upstream may
    count on seeing one.  What it answers does not matter: the model is loaded.
    """
    try:
        async with dispatcher.lease(model, PRIORITY, reason="preload") as lease:
            # treq and what it takes along weigh 3.6 MiB, and most daemons preload nothing.
            from llamaswap.greeting import greet

            await greet(lease, reactor)
            _log.info("preload.loaded model={model} seconds={load:.1f}", model=model, load=lease.load)
    except Refusal as refusal:
        _log.error("preload.failed model={model} why={why}", model=model, why=refusal.message)
    except Abandoned as gone:
        raise CancelledError from gone
