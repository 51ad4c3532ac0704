"""One request of a trace: when it came, what it wanted, how long it would run.

Knows nothing of where a trace comes from, and nothing of what happens to it.
"""

from __future__ import annotations

import msgspec


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it reaches the box, in seconds of virtual time.

    A trace is a series of these whose `at` never falls; it may begin at any moment.
    """

    at: float  # finite
    model: str  # a model id of the scenario, not an alias
    priority: int  # the effective one: 100 interactive, 0 normal, -100 batch, or any other
    run: float  # from the lease to the end of the answer, the load not included; finite, >= 0
    user: str = ""  # who asked; handed through, never looked into
    cancel_after: float | None = None  # >= 0; its client leaves if the run has not begun by then
