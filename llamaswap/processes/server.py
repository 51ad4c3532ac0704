"""One model's server: started when somebody needs it, stopped when nobody does.

Knows who waits for what, and what each event in a child's life means to them.
Not how a child is run (`run`), nor which model should run:
that is decided elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from llamaswap.config.launch import same_process
from llamaswap.config.model import ModelConfig
from llamaswap.processes.child import CannotStart, ChildRunner, PortTaken
from llamaswap.processes.failures import LoadFailed, ServerGone, ServerStuck
from llamaswap.processes.health import Address, Prober
from llamaswap.processes.idling import IdleTimer
from llamaswap.processes.lifecycle import Standing, State, new_lifecycle
from llamaswap.processes.logbook import Logbook
from llamaswap.processes.outbox import Outbox, Waiters
from llamaswap.processes.run import Run

START_GRACE = 5.0
"""Seconds for a child that is stopped before it was ready; it has no work to finish."""

INSTANT = 1.0  # seconds
RECENT = 30.0  # seconds
SECOND_TRY_PAUSE = 3.0
"""Seconds before a child is tried again that ended within INSTANT, RECENT after a `cmdStop`.

What that command cleared away (a container's name) may be free a little later.
"""

LEGACY = 5.0
"""Seconds from a server's making in which whoever has its port may be the child of a daemon that was killed a
moment ago: its memory, above all that of a GPU, takes time to go, and the port goes last."""

LOOK_AGAIN = 0.1  # seconds between two looks at such a port

PREMATURE = "upstream command exited prematurely"


@dataclass(frozen=True, slots=True)
class ServerReport:
    """What a server looks like at one moment: to be shown, never acted on."""

    model: str
    state: State
    pid: int | None  # of the child, while there is one
    since: float  # when it came into this state, on the clock
    uses: int  # under way


class ModelServer:
    """A model's child, its state, and everybody who waits for a change of it.

    Every call may be made at any time, also from within `changed` and from the
    callbacks of the Deferreds that it returned.
    """

    _log = Logger()

    def __init__(
        self,
        model: ModelConfig,
        *,
        children: ChildRunner,
        clock: IReactorTime,
        prober: Prober,
        logbook: Logbook,
        changed: Callable[[str, State, State], None],
        may_expire: Callable[[str], bool],
        moved: Callable[[], None] = lambda: None,
        is_own: Callable[[Address], bool] = lambda _address: False,
    ) -> None:
        """Make a stopped server.

        Args:
            logbook: takes what the child writes.
            changed: told (model id, old, new) after each change of state.
            may_expire: asked with the model id before its `ttl` ends it.
            moved: called in the very moment when `state`, `lasting`, `outdated` or `leaving` changes; it
                may only note that.
            is_own: whether this very daemon listens at an address: no model can be there.
        """
        self.model = model
        self.address = Address("", 0, "", "")  # valid while ready
        self.loads = 0  # times that it became ready
        self.crashes = 0  # times that it ended by itself after that
        self.stops = 0  # times that somebody asked it to stop
        self._children = children
        self._clock = clock
        self._prober = prober
        self._logbook = logbook
        self._changed = changed
        self._moved = moved
        self._is_own = is_own
        self._standing = Standing(moved=moved)
        self._life = new_lifecycle(self._standing)
        self._since = clock.seconds()
        self._outbox = Outbox()
        self._wanted = Waiters(self._outbox)
        self._leaving = Waiters(self._outbox)
        self._idle = IdleTimer(clock, float(model.ttl), partial(may_expire, model.id), self._expired)
        self._run: Run | None = None
        self._second_try: IDelayedCall | None = None
        self._tried_again = False
        self._legacy_until = clock.seconds() + LEGACY
        self._last_stop: float | None = None
        self._successor: ModelConfig | None = None  # what it runs as from its next start on
        self._retiring = False  # it ends with its last use

    @property
    def state(self) -> State:
        """Where it is in its life now."""
        return self._standing.state

    @property
    def lasting(self) -> bool:
        """Whether it is ready and stays so."""
        return self.state is State.READY and self._successor is None

    @property
    def outdated(self) -> bool:
        """Whether it is ready, but another configuration replaces it as soon as its uses have ended."""
        return self.state is State.READY and self._successor is not None

    @property
    def leaving(self) -> bool:
        """Whether its child is on its way out, also where it still counts as starting."""
        return self._run is not None and self._run.was_stopped

    def ensure_ready(self) -> Deferred[None]:
        """Have it ready: start it if need be, or join a start under way.

        A start that is asked for during a stop, or before one that another
        configuration makes necessary, follows it.  Cancelling the Deferred
        takes only this waiter away.

        Returns:
            Fires once it is ready, or fails with `LoadFailed`.
        """
        if self.lasting:
            return succeed(None)
        if self._hangs:
            return fail(LoadFailed(self.model.id, self._hangs))
        if self.state is State.SHUTDOWN:
            return fail(LoadFailed(self.model.id, "is shut down"))
        waiter = self._wanted.add()
        self._start_if_wanted()
        self._outbox.deliver()
        return waiter

    def stop(self, grace: float | None = None) -> Deferred[None]:
        """Stop it, or join a stop under way; who waits for it to be ready is told "aborted".

        Args:
            grace: seconds before it is killed, `unloadTimeout` if None.  A stop
                under way is shortened by it, never prolonged.

        Returns:
            Fires when nothing of the child is left; fails with `ServerStuck` if
            that does not come, and with `ServerGone` after a shutdown.
        """
        self.stops += 1
        if self.state is State.SHUTDOWN:
            return fail(ServerGone(f"{self.model.id}: is shut down"))
        if self._hangs:
            return fail(ServerStuck(self._hangs))
        self._wanted.answer(LoadFailed(self.model.id, "aborted"))
        waiter = self._leaving.add()
        self._stop(float(self.model.unload_timeout) if grace is None else grace, "asked to stop")
        self._outbox.deliver()
        return waiter

    def shutdown(self, grace: float) -> Deferred[None]:
        """Stop it for good; it can never be started again.

        Args:
            grace: seconds before the child is killed.

        Returns:
            Fires when nothing of the child is left; never fails.
        """
        self._wanted.answer(LoadFailed(self.model.id, "aborted: shutting down"))
        waiter = self._leaving.add()
        if self.state is not State.SHUTDOWN:
            grace = min(grace, START_GRACE) if self.state is State.STARTING else grace
            self._move(self._life.shut_down)
        self._stop(grace, "shutting down")
        self._outbox.deliver()
        return waiter

    def reconfigure(self, model: ModelConfig) -> None:
        """Be what `model` says; a child that was started differently ends when its uses have ended.

        Whoever waits for it to be ready goes on waiting, for the new one.
        """
        self._retiring = False
        if self.state is State.STOPPED or same_process(model, self.model):
            self._succeeded_by(None)
            self._become(model)
            if self.state is State.READY:  # whoever waited for a replacement has one that lasts after all
                self._wanted.answer()
                self._outbox.deliver()
            return
        self._succeeded_by(model)
        if self.state is State.STARTING or (self.state is State.READY and not self._idle.uses):
            self._stop(float(self.model.unload_timeout), "its configuration has changed")
            self._outbox.deliver()

    def retire(self) -> None:
        """End when the uses under way have ended; who waits for it to be ready is told "aborted".

        `reconfigure` takes that back.
        """
        self._wanted.answer(LoadFailed(self.model.id, "aborted: no longer configured"))
        self._retiring = True
        if self.state is State.STARTING or not self._idle.uses:  # uses may be those of a child that crashed
            self._stop(float(self.model.unload_timeout), "no longer configured")
        self._outbox.deliver()

    def begin_use(self) -> None:
        """A request is under way: no `ttl` while it lasts."""
        self._idle.begin_use()

    def end_use(self) -> None:
        """That request is over; `ttl` counts from here.  Raises ValueError if there was none."""
        self._idle.end_use()
        outdated = self._successor is not None or self._retiring
        if outdated and not self._idle.uses and self.state is State.READY:
            self._stop(float(self.model.unload_timeout), "its configuration has changed")
            self._outbox.deliver()

    def report(self) -> ServerReport:
        """What it looks like now."""
        pid = None if self._run is None else self._run.pid
        return ServerReport(self.model.id, self.state, pid, self._since, self._idle.uses)

    # --- on the way up ---

    def _start_if_wanted(self) -> None:
        if self.state is State.STOPPED and self._wanted:
            self._tried_again = False
            self._move(self._life.started)
            self._spawn()

    def _spawn(self) -> None:
        self._second_try = None
        run = self._run = Run(
            self.model,
            children=self._children,
            clock=self._clock,
            prober=self._prober,
            logbook=self._logbook,
            is_own=self._is_own,
            ready=self._ready,
            late=self._late,
            stuck=self._stuck,
            ended=self._ended,
        )
        try:
            run.start()
        except (CannotStart, ValueError) as error:
            if isinstance(error, PortTaken) and self._clock.seconds() < self._legacy_until:
                self._run = None
                self._second_try = self._clock.callLater(LOOK_AGAIN, self._try_again)
                return
            self._log.error(
                "process.not_started model={model} why={why}", model=self.model.id, why=str(error)
            )
            self._load_failed(run, str(error))
            self._gone()
        except Exception as error:  # noqa: BLE001 - or all who need it would wait for ever
            self._log.failure("process.start_failed model={model}", model=self.model.id)
            self._load_failed(run, f"failed to start: {error}")
            if run.pid is None:
                self._gone()
            else:
                self._stop(START_GRACE, "failed to start")

    def _ready(self, address: Address) -> None:
        assert self._run is not None
        self.address = address
        self.loads += 1
        self._move(self._life.became_ready)
        self._idle.start()
        self._wanted.answer()
        self._log.info(
            "process.ready model={model} seconds={seconds:.3f}", model=self.model.id, seconds=self._run.age
        )
        self._outbox.deliver()

    def _late(self, why: str) -> None:
        assert self._run is not None
        self._load_failed(self._run, why)
        self._stop(START_GRACE, why)
        self._outbox.deliver()

    def _load_failed(self, run: Run, why: str) -> None:
        self._wanted.answer(LoadFailed(self.model.id, why, run.tail()))

    # --- on the way down ---

    def _expired(self) -> None:
        self._stop(float(self.model.unload_timeout), f"idle for {self.model.ttl} s")
        self._outbox.deliver()

    def _stop(self, grace: float, why: str) -> None:
        """Bring the child to its end, if there is one; whatever state that is in."""
        self._idle.stop()
        if self._run is None:
            self._gone()
            return
        if self.state is State.READY:
            self._move(self._life.asked_to_stop)
        self._run.stop(min(grace, START_GRACE) if self.state is State.STARTING else grace, why)
        self._moved()

    def _stuck(self) -> None:
        """Nobody who could do something else waits for what does not come."""
        self._wanted.answer(LoadFailed(self.model.id, self._hangs))
        if self.state is not State.SHUTDOWN:
            self._leaving.answer(ServerStuck(self._hangs))
        self._outbox.deliver()

    @property
    def _hangs(self) -> str:
        """Why it cannot be stopped; '' while it may still end."""
        if self._run is None or not self._run.stuck:
            return ""
        what = "its cmdStop" if self._run.pid is None else f"its process {self._run.pid}"
        return f"{self.model.id} cannot be stopped: {what} does not end, not even by SIGKILL"

    def _ended(self, how: str) -> None:
        run, self._run = self._run, None
        assert run is not None
        if run.was_stopped:
            self._last_stop = self._clock.seconds()
        elif self.state is State.READY:
            self.crashes += 1
        elif self.state is State.STARTING:
            if self._deserves_second_try(run):
                self._tried_again = True
                self._second_try = self._clock.callLater(SECOND_TRY_PAUSE, self._try_again)
                return
            # Where it said nothing there is nothing to add to llama-swap's own words.
            self._load_failed(run, f"{PREMATURE}: {how}" if run.tail() else PREMATURE)
        self._gone()
        self._outbox.deliver()

    def _deserves_second_try(self, run: Run) -> bool:
        if self._tried_again or self._last_stop is None or not self.model.cmd_stop.strip():
            return False
        return run.age < INSTANT and self._clock.seconds() - self._last_stop < RECENT

    def _try_again(self) -> None:
        self._spawn()
        self._outbox.deliver()

    def _gone(self) -> None:
        """Nothing of a child is left."""
        self._run = None
        self._idle.stop()
        if self._second_try is not None:
            self._second_try.cancel()
            self._second_try = None
        if self._successor is not None:
            self._become(self._successor)
            self._succeeded_by(None)
        if self.state not in {State.STOPPED, State.SHUTDOWN}:
            self._move(self._life.ended)
        self._leaving.answer()
        # After those who waited for the end have seen it.
        self._outbox.post(self._start_if_wanted)

    def _succeeded_by(self, model: ModelConfig | None) -> None:
        self._successor = model
        self._moved()

    def _become(self, model: ModelConfig) -> None:
        new_ttl = model.ttl != self.model.ttl
        self.model = model
        self._idle.ttl = float(model.ttl)
        if new_ttl and self.state is State.READY:
            self._idle.start()

    def _move(self, event: Callable[[], None]) -> None:
        old = self.state
        event()
        self._since = self._clock.seconds()
        self._outbox.post(partial(self._changed, self.model.id, old, self.state))
