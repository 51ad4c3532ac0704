"""Make models ready and stop them, and see which of them are there.

Knows the servers, the loads that are under way and the doubts about servers
whose connection broke.  Which model is loaded when, and for whom, is decided
elsewhere; how a load ended is reported to whoever asked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from llamaswap.chores import Chores
from llamaswap.doubts import Doubts
from llamaswap.errors import LoadRefused
from llamaswap.leases import Lease, SwapReason
from llamaswap.processes.failures import LoadFailed, ServerGone, ServerStuck
from llamaswap.processes.fleet import Fleet
from llamaswap.processes.lifecycle import State
from llamaswap.scheduling.vocabulary import Facts

_READY: Final = State.READY  # looking a member up in its class takes as long as a call


class Reports(msgspec.Struct, frozen=True, kw_only=True):
    """Whom to tell of loads."""

    began: Callable[[str, SwapReason], None]
    """With the model, before anything is stopped for it."""
    ended: Callable[[str, float], None]
    """With the model, which is ready now, and the seconds that it took, evictions included."""
    failed: Callable[[str, str, Sequence[str]], None]
    """With the model, why (one line), and its last lines of output."""
    revived: Callable[[Lease, float | None], None]
    """With the lease whose server had died and is ready again, and the seconds that it took; None for the
    seconds where somebody else had begun that load."""
    room: Callable[[], None]
    """A server that was in doubt lives on, or one that may have been in the way has gone: more may be
    possible than at the last event."""
    fits: Callable[[str], bool]
    """Whether a model may run beside what runs now."""
    held: Callable[[str], bool]
    """Whether some ticket holds a lease of this model now."""


class Loads:
    """The loads under way, and what runs.

    Args:
        fleet: the server of every local model, by id.
        clock: measures loads.
    """

    _log = Logger()

    def __init__(self, fleet: Fleet, clock: IReactorTime, reports: Reports) -> None:
        self._fleet = fleet
        self._clock = clock
        self._reports = reports
        self._chores = Chores()
        self._doubts = Doubts(clock, reports.room)
        self.under_way: dict[str, Deferred[None]] = {}
        self._began: dict[str, float] = {}  # when each of them was begun, and those that rest
        self._looked = (-1, -1)  # what the fleet and the doubts were like when these two were found out
        self._running: frozenset[str] = frozenset()
        self._stopping: frozenset[str] = frozenset()
        self.ready: frozenset[str] = frozenset()  # as of the latest `facts`

    def facts(self) -> Facts:
        """Look at the world; the servers one by one only if something about them has changed."""
        looked = (self._fleet.version, self._doubts.version)
        if looked != self._looked:
            self._looked = looked
            there = [
                (model, server)
                for model, server in self._fleet.items()
                if server.state not in (State.STOPPED, State.SHUTDOWN)
            ]
            self._running = frozenset(model for model, _ in there)
            self._stopping = frozenset(model for model, server in there if server.leaving)
            self.ready = frozenset(
                model for model, server in there if server.lasting and model not in self._doubts
            )
        return Facts(
            now=self._clock.seconds(), running=self._running, ready=self.ready, stopping=self._stopping
        )

    def begin(self, model: str, evict: frozenset[str], reason: SwapReason) -> None:
        """Stop what is in the way, then make the model ready; `Reports` say how it went."""
        self._tell_of(model, evict, reason)
        self._start(model, evict, self._clock.seconds())

    def suspend(self) -> None:
        """Let all loads rest where they are: what they evict is to be planned anew."""
        for model in tuple(self.under_way):
            self.under_way.pop(model).cancel()

    def resume(self, model: str, evict: frozenset[str]) -> None:
        """Go on with a suspended load, once these are stopped, too; it counts from when it was begun."""
        self._log.info(
            "dispatch.load_goes_on model={model} evict={evict}", model=model, evict=",".join(sorted(evict))
        )
        self._start(model, evict, self._began.get(model, self._clock.seconds()))

    def stop(self, model: str, grace: float | None) -> Deferred[None]:
        """Stop a model; a load of it that is under way ends without a report.

        Returns:
            As `ModelServer.stop`.
        """
        load = self._over(model)
        if load is not None:
            load.cancel()
        return self._fleet[model].stop(grace)

    def dismiss(self, model: str) -> None:
        """Stop a model, and wait for nothing."""
        self.stop(model, None).addErrback(_given_up)

    def abandon(self) -> None:
        """Forget every load and every doubt: the daemon ends."""
        self._chores.cancel_all()
        self._doubts.clear()

    def doubt(self, model: str) -> None:
        """A connection to this model's server broke: nobody else gets it before we know whether it ended."""
        server = self._fleet.get(model)
        if server is not None and server.state is _READY:
            self._doubts.begin(model)

    def server_changed(self, model: str) -> None:
        """This model's server has come into another state."""
        self._doubts.end(model)
        server = self._fleet.get(model)
        if server is None or server.state is State.STOPPED:
            self._reports.room()

    async def revive(self, lease: Lease) -> bool:
        """Find out, after a connection to a leased server was refused, whether another one is worth trying.

        It may have died a moment ago, before anybody could know; then it is started
        again, as part of the job that holds the lease, unless another model has taken
        its place meanwhile.  One that somebody has stopped stays stopped.

        Raises:
            LoadRefused: it could not be started.
        """
        server = lease.server
        model = server.model.id
        self.doubt(model)
        await self._doubts.over(model)
        if server.state is _READY:
            return True
        if lease.verdict is None or server.crashes == lease.crashes or self._fleet.get(model) is not server:
            return False
        if server.stops != lease.stops:
            return False
        if not self._reports.fits(model):
            return False
        began = self._clock.seconds()
        joins = server.state is State.STARTING  # several jobs beside each other may find it dead
        if not joins:
            self._tell_of(model, frozenset(), "revive")
        try:
            await server.ensure_ready()
        except LoadFailed as failed:
            raise LoadRefused(failed.why, failed.output) from failed
        self._reports.revived(lease, None if joins else self._clock.seconds() - began)
        return True

    def _tell_of(self, model: str, evict: frozenset[str], reason: SwapReason) -> None:
        self._reports.began(model, reason)
        self._log.info(
            "dispatch.load_began model={model} evict={evict}", model=model, evict=",".join(sorted(evict))
        )

    def _start(self, model: str, evict: frozenset[str], began: float) -> None:
        self._began[model] = began
        load = self._chores.start(f"load {model}", self._make_ready(model, evict, began))
        if not load.called:
            self.under_way[model] = load

    def _over(self, model: str) -> Deferred[None] | None:
        """A load has ended, or is to; returns it if it is under way."""
        self._began.pop(model, None)
        return self.under_way.pop(model, None)

    async def _make_room(self, model: str, evict: frozenset[str]) -> None:
        """Stop what is in the way, and the model itself where it is no longer what it should be."""
        try:
            # A model that others wait for gets the time a load gets, as in llama-swap.
            await all_stopped([self.stop(m, self._fleet[m].model.health_check_timeout) for m in evict])
            await self._doubts.over(model)
            server = self._fleet[model]
            if server.outdated and not self._reports.held(model):
                await all_stopped([server.stop()])  # whoever only looks must not keep it from its next job
        except ServerStuck as stuck:
            raise LoadFailed(model, str(stuck)) from stuck

    async def _make_ready(self, model: str, evict: frozenset[str], began: float) -> None:
        """Stop what is in the way, make the model ready, and report how it went."""
        try:
            await self._make_room(model, evict)
            await self._fleet[model].ensure_ready()
        except LoadFailed as failed:
            self._over(model)
            self._log.error("dispatch.load_failed model={model} why={why}", model=model, why=failed.why)
            self._reports.failed(model, failed.why, failed.output)
        else:
            self._over(model)
            self._reports.ended(model, self._clock.seconds() - began)


async def all_stopped(stops: Sequence[Deferred[None]]) -> None:
    """Wait for stops that are under way.

    One by one, because cancelling a `DeferredList` lets it succeed: a load that
    was ended while it made room would go on and start its child.

    Raises:
        ServerStuck: one of them does not come to its end; the others have been waited for.
    """
    stuck: list[Failure] = []

    def failed(failure: Failure) -> None:
        if failure.trap(ServerGone, ServerStuck) is ServerStuck:  # gone: nothing of it is left
            stuck.append(failure)

    for stop in stops:
        stop.addErrback(failed)
    for stop in stops:
        await stop
    if stuck:
        stuck[0].raiseException()


def _given_up(failure: Failure) -> None:
    """Nobody waits: what there is to say has been logged."""
    failure.trap(ServerGone, ServerStuck)
