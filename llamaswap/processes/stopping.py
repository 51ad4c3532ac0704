"""Bring one child to its end: ask, wait, kill.

Knows `cmdStop`, SIGTERM, SIGKILL and the grace between them; not why the
child should stop nor who waits for it.
"""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from llamaswap.config.command import split_command
from llamaswap.config.model import ModelConfig
from llamaswap.processes.child import CannotStart, Child, ChildRunner, Ending, Order

LAST_CALL = 2.0
"""Seconds before its end at which a `cmdStop` that still runs gets help from SIGTERM ..."""

LAST_CALL_SHARE = 0.2
"""... but no more than this part of the grace."""

OUTLIVED = 10.0
"""Seconds after SIGKILL at which somebody is told that the child is still there.

It hangs in the kernel then, mostly in the driver of a GPU, and has whatever it had.
"""

STUCK = 60.0
"""Seconds after SIGKILL at which whoever waits for the end is told that it does not come.

Not as soon as `OUTLIVED`: to give back hundreds of gigabytes of locked memory takes the kernel a while.
"""


class Stopping:
    """One child that is being stopped.

    It is over when the child has gone and no `cmdStop` runs any more: what
    that one still clears away, the next child may stumble over.
    """

    _log = Logger()

    def __init__(
        self,
        model: ModelConfig,
        child: Child,
        *,
        children: ChildRunner,
        clock: IReactorTime,
        output: Callable[[bytes], None],
        stuck: Callable[[], None],
        over: Callable[[], None],
    ) -> None:
        """Prepare; nothing happens before `begin`.

        Args:
            output: takes what `cmdStop` prints.
            stuck: called once if it is not over `STUCK` after SIGKILL.
            over: called once, never from within `begin` or `hasten`.
        """
        self._model = model
        self._child = child
        self._children = children
        self._clock = clock
        self._output = output
        self._stuck = stuck
        self._over = over
        self._command: Child | None = None
        self._child_gone = False
        self._killed = False
        self._deadline = 0.0
        self._timers: list[IDelayedCall] = []

    def begin(self, grace: float) -> None:
        """Ask the child to go; kill it after `grace` seconds."""
        self._deadline = self._clock.seconds() + grace
        self._arm(grace)
        if not self._run_command():
            self._child.terminate()

    def hasten(self, grace: float) -> None:
        """Leave at most `grace` seconds from now; never more than before."""
        if self._clock.seconds() + grace < self._deadline:
            self._deadline = self._clock.seconds() + grace
            self._arm(grace)

    def child_ended(self) -> None:
        """The child has gone."""
        self._child_gone = True
        self._look()

    def _run_command(self) -> bool:
        words = split_command(self._model.cmd_stop.replace("${PID}", str(self._child.pid)))
        if not words:
            return False
        try:
            order = Order(words, self._model.env, detaches=True)  # it may have more to clear away
            self._command = self._children.spawn(order, self._output, self._command_ended)
        except CannotStart as error:
            self._complain(str(error))
            return False
        return True

    def _command_ended(self, ending: Ending) -> None:
        self._command = None
        if ending.clean:  # it may have told a wrapper only, which does not pass that on
            self._child.terminate_rest()
        elif not (self._child_gone or self._killed):
            self._complain(ending.how)
            self._child.terminate()
        self._look()

    def _last_call(self) -> None:
        if self._command is not None and not self._child_gone:
            self._child.terminate()

    def _kill(self) -> None:
        self._killed = True
        if not self._child_gone:
            self._child.kill()
            self._timers.append(self._clock.callLater(OUTLIVED, self._outlived))
        if self._command is not None:
            self._complain("was still running when the grace was over")
            self._command.kill()
        self._timers.append(self._clock.callLater(STUCK, self._stuck))

    def _outlived(self) -> None:
        if not self._child_gone:
            self._log.error(
                "process.outlives_kill model={model} pid={pid} seconds={seconds:.0f}",
                model=self._model.id,
                pid=self._child.pid,
                seconds=OUTLIVED,
            )

    def _complain(self, why: str) -> None:
        self._log.warn("process.stop_command_failed model={model} why={why}", model=self._model.id, why=why)

    def _look(self) -> None:
        if self._child_gone and self._command is None:
            self._disarm()
            self._over()

    def _arm(self, grace: float) -> None:
        self._disarm()
        last_call = max(0.0, grace - min(LAST_CALL, LAST_CALL_SHARE * grace))
        self._timers = [
            self._clock.callLater(last_call, self._last_call),
            self._clock.callLater(grace, self._kill),
        ]

    def _disarm(self) -> None:
        for timer in self._timers:
            if timer.active():
                timer.cancel()
        self._timers = []
