"""The states of a child model server, and every move between them.

A move that is not declared here raises `automat.NoTransition`.  What has to
happen in the world around a move, and who is told, is `server`'s business.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from automat import TypeMachineBuilder


class State(StrEnum):
    """Where a child is in its life; the values are what clients see."""

    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    STOPPING = "stopping"
    SHUTDOWN = "shutdown"


@dataclass(slots=True)
class Standing:
    """What the machine writes down: the state it is in.

    Args:
        moved: called at each move, before anybody else can hear of it.
    """

    state: State = State.STOPPED
    moved: Callable[[], None] = lambda: None

    def enter(self, state: State) -> None:
        """Be in another state from now on."""
        self.state = state
        self.moved()


class Lifecycle(Protocol):
    """What can happen to a child model server."""

    def started(self) -> None:
        """Somebody needs it and it has been set going."""

    def became_ready(self) -> None:
        """It serves."""

    def asked_to_stop(self) -> None:
        """It serves no more and is being brought to its end."""

    def ended(self) -> None:
        """Nothing of it runs any more, for whatever reason."""

    def shut_down(self) -> None:
        """It will never be started again."""


_builder = TypeMachineBuilder(Lifecycle, Standing)
_stopped = _builder.state("stopped")
_starting = _builder.state("starting")
_ready = _builder.state("ready")
_stopping = _builder.state("stopping")
_shutdown = _builder.state("shutdown")


@_stopped.upon(Lifecycle.started).to(_starting)
def _start(_lifecycle: Lifecycle, standing: Standing) -> None:
    standing.enter(State.STARTING)


@_starting.upon(Lifecycle.became_ready).to(_ready)
def _serve(_lifecycle: Lifecycle, standing: Standing) -> None:
    standing.enter(State.READY)


# A stop while starting has no state of its own: clients see `starting`, then `stopped`.
@_ready.upon(Lifecycle.asked_to_stop).to(_stopping)
def _stop(_lifecycle: Lifecycle, standing: Standing) -> None:
    standing.enter(State.STOPPING)


@_starting.upon(Lifecycle.ended).to(_stopped)
@_ready.upon(Lifecycle.ended).to(_stopped)
@_stopping.upon(Lifecycle.ended).to(_stopped)
def _end(_lifecycle: Lifecycle, standing: Standing) -> None:
    standing.enter(State.STOPPED)


@_stopped.upon(Lifecycle.shut_down).to(_shutdown)
@_starting.upon(Lifecycle.shut_down).to(_shutdown)
@_ready.upon(Lifecycle.shut_down).to(_shutdown)
@_stopping.upon(Lifecycle.shut_down).to(_shutdown)
def _shut_down(_lifecycle: Lifecycle, standing: Standing) -> None:
    standing.enter(State.SHUTDOWN)


# A child may outlive its owner's interest by the grace that it was given.
_shutdown.upon(Lifecycle.ended).loop().returns(None)
_shutdown.upon(Lifecycle.shut_down).loop().returns(None)

_machine = _builder.build()


def new_lifecycle(standing: Standing) -> Lifecycle:
    """Make the machine of one server; it starts stopped and writes its state to `standing`."""
    return _machine(standing)
