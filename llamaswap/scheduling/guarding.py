"""Which protected models stand in the way of a request.

A model that is configured as `protected` keeps its place while its process
runs: a request that would have to evict it is refused, unless it says that it
may.  Who runs, and when the question is put, is the schedulers' business.
"""

from __future__ import annotations

from collections.abc import Mapping

from llamaswap.config.model import ModelConfig
from llamaswap.errors import ModelProtected
from llamaswap.scheduling.vocabulary import MakeRoom, Ticket


def protected_models(models: Mapping[str, ModelConfig]) -> frozenset[str]:
    """Return the ids of the models that are protected while they run."""
    return frozenset(name for name, model in models.items() if model.protected)


def turned_away(
    ticket: Ticket,
    running: frozenset[str],
    stopping: frozenset[str],
    protected: frozenset[str],
    make_room: MakeRoom,
) -> ModelProtected | None:
    """Return the refusal of a ticket that would have to evict a protected model now; None if it need not.

    Args:
        ticket: one whose model would be loaded, or would serve.
        running: the models that count for the planner.
        stopping: those of them that end anyway.
        protected: as `protected_models` names them.
        make_room: the eviction planner.
    """
    if ticket.overrides:
        return None
    holders = (make_room(ticket.model, running) & protected) - stopping
    return ModelProtected(ticket.model, sorted(holders)) if holders else None
