"""One child of a model, from its start to its end.

Knows how the pieces of one life fit together: the process, the probes, the
stop.  Not the state that clients see, nor who waits for it: that is `server`'s.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from llamaswap.config.model import ModelConfig
from llamaswap.config.urls import without_user
from llamaswap.processes.child import Child, ChildRunner, Ending, Order
from llamaswap.processes.health import Address, NotReady, Prober, parse_proxy, wait_until_ready
from llamaswap.processes.logbook import Logbook
from llamaswap.processes.stopping import Stopping

TAIL_LINES = 10
"""How many of its last lines of output go with the news that a child failed."""

NO_CHECK = "none"


class Run:
    """A child that has been started for a model, or is about to be.

    The callbacks come at most once each, `ended` last; only `ready` may
    come from within `start`.
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
        is_own: Callable[[Address], bool],
        ready: Callable[[Address], None],
        late: Callable[[str], None],
        stuck: Callable[[], None],
        ended: Callable[[str], None],
    ) -> None:
        """Prepare; nothing happens before `start`.

        Args:
            logbook: takes what the child, and its `cmdStop`, write.
            is_own: whether this very daemon listens at an address.
            ready: it serves, at this address.
            late: it had its time and does not serve, for this reason (one line).
            stuck: it has been killed, and does not end.
            ended: nothing of it is left; how it went, such as "exited with code 1".
        """
        self._model = model
        self._children = children
        self._clock = clock
        self._prober = prober
        self._logbook = logbook
        self._is_own = is_own
        self._ready = ready
        self._late = late
        self._told_stuck = stuck
        self._ended = ended
        self.stuck = False  # whether it has been killed, and does not end
        self._born = clock.seconds()
        self._before = logbook.written
        self._child: Child | None = None
        self._how = ""
        self._probing: Deferred[Address] | None = None
        self._stopping: Stopping | None = None

    @property
    def pid(self) -> int | None:
        """The child's process id, while it runs."""
        return None if self._child is None else self._child.pid

    @property
    def age(self) -> float:
        """Seconds since it was started."""
        return self._clock.seconds() - self._born

    @property
    def was_stopped(self) -> bool:
        """Whether its end was asked for."""
        return self._stopping is not None

    def tail(self) -> tuple[str, ...]:
        """The last lines that this child wrote."""
        return tuple(self._logbook.tail(TAIL_LINES, since=self._before))

    def start(self) -> None:
        """Start the child, and watch for it to become ready.

        Raises:
            CannotStart: there is no such program, or no room for it.
            ValueError: `proxy` is not a URL, or leads back to us.
        """
        address = parse_proxy(self._model.proxy)
        if self._is_own(address):
            # We would say that we are well, and then send its requests to ourselves for ever.
            shown = without_user(self._model.proxy)
            raise ValueError(f"proxy {shown!r} is where this daemon itself listens")
        order = Order(self._model.argv, self._model.env, self._model.port)
        self._child = self._children.spawn(order, self._logbook.append, self._child_ended)
        self._log.info("process.started model={model} pid={pid}", model=self._model.id, pid=self._child.pid)
        if self._model.check_endpoint.strip() == NO_CHECK:
            self._ready(address)
        else:
            waiting = wait_until_ready(self._model, address, self._prober, self._clock)
            self._probing = Deferred.fromCoroutine(waiting)
            self._probing.addCallbacks(self._answered, self._unanswered)

    def stop(self, grace: float, why: str) -> None:
        """Bring it to its end within `grace` seconds; again only to shorten that."""
        self._stop_probing()
        if self._stopping is not None:
            self._stopping.hasten(grace)
        elif self._child is not None:
            self._log.info("process.stopping model={model} why={why}", model=self._model.id, why=why)
            self._stopping = Stopping(
                self._model,
                self._child,
                children=self._children,
                clock=self._clock,
                output=self._logbook.append,
                stuck=self._never_ends,
                over=self._over,
            )
            self._stopping.begin(grace)

    def _answered(self, address: Address) -> None:
        self._probing = None
        self._ready(address)

    def _unanswered(self, failure: Failure) -> None:
        self._probing = None
        if failure.check(CancelledError):  # by ourselves
            return
        if not failure.check(NotReady, ValueError):
            self._log.failure("process.probe_failed model={model}", failure, model=self._model.id)
        self._late(failure.getErrorMessage())

    def _stop_probing(self) -> None:
        if self._probing is not None:
            self._probing.cancel()

    def _child_ended(self, ending: Ending) -> None:
        self._child = None
        self._how = ending.how
        self._stop_probing()
        if self._stopping is None:
            self._log.warn(
                "process.exited model={model} how={how} last={last}",
                model=self._model.id,
                how=ending.how,
                last=" | ".join(self.tail()),
            )
            self._over()
        else:
            self._log.info("process.exited model={model} how={how}", model=self._model.id, how=ending.how)
            self._stopping.child_ended()

    def _never_ends(self) -> None:
        self.stuck = True
        self._told_stuck()

    def _over(self) -> None:
        self._ended(self._how)
