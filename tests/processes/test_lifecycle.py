"""Which moves there are between the states, and that there are no others."""

from __future__ import annotations

import pytest
from automat import NoTransition

from llamaswap.processes.lifecycle import Lifecycle, Standing, State, new_lifecycle

WAYS: dict[State, list[str]] = {
    State.STOPPED: [],
    State.STARTING: ["started"],
    State.READY: ["started", "became_ready"],
    State.STOPPING: ["started", "became_ready", "asked_to_stop"],
    State.SHUTDOWN: ["shut_down"],
}

MOVES = {
    (State.STOPPED, "started"): State.STARTING,
    (State.STOPPED, "shut_down"): State.SHUTDOWN,
    (State.STARTING, "became_ready"): State.READY,
    (State.STARTING, "ended"): State.STOPPED,
    (State.STARTING, "shut_down"): State.SHUTDOWN,
    (State.READY, "asked_to_stop"): State.STOPPING,
    (State.READY, "ended"): State.STOPPED,
    (State.READY, "shut_down"): State.SHUTDOWN,
    (State.STOPPING, "ended"): State.STOPPED,
    (State.STOPPING, "shut_down"): State.SHUTDOWN,
    (State.SHUTDOWN, "ended"): State.SHUTDOWN,
    (State.SHUTDOWN, "shut_down"): State.SHUTDOWN,
}

EVENTS = ["started", "became_ready", "asked_to_stop", "ended", "shut_down"]


def in_state(state: State) -> tuple[Standing, Lifecycle]:
    standing = Standing()
    lifecycle = new_lifecycle(standing)
    for event in WAYS[state]:
        getattr(lifecycle, event)()
    assert standing.state is state
    return standing, lifecycle


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("event", EVENTS)
def test_every_event_in_every_state_moves_as_declared_or_is_refused(state: State, event: str) -> None:
    standing, lifecycle = in_state(state)
    target = MOVES.get((state, event))

    if target is None:
        with pytest.raises(NoTransition):
            getattr(lifecycle, event)()
        assert standing.state is state
    else:
        getattr(lifecycle, event)()
        assert standing.state is target


def test_two_lifecycles_share_nothing() -> None:
    first, _ = in_state(State.READY)
    second, _ = in_state(State.STOPPED)

    assert (first.state, second.state) == (State.READY, State.STOPPED)
