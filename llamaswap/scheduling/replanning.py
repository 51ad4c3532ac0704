"""The loads under way when the configuration changes: which go on, and what has to stop for them now.

Each was planned under rules that no longer count.  What has been granted is not
taken back: whoever is being served keeps his model, and so does whoever waits
for a load; all else makes room as for a load that begins now.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from llamaswap.errors import Refusal, UnknownModel
from llamaswap.scheduling.guarding import turned_away
from llamaswap.scheduling.vocabulary import Facts, Handover, MakeRoom, Resume, Ticket


class Replanned(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of the loads that one scheduler leaves to the next."""

    claimed: tuple[Resume, ...]
    """Somebody waits for these, and they go on."""
    unclaimed: frozenset[str]
    """Nobody waits for these, but they are in nobody's way: they go on."""
    ended: frozenset[str]
    """These do not."""
    loading: tuple[Ticket, ...]
    """Who waits for a load that goes on."""
    refused: tuple[tuple[Ticket, Refusal], ...]
    """Who waited for one that may not."""


def replan(
    handover: Handover,
    models: Collection[str],
    facts: Facts,
    make_room: MakeRoom,
    protected: frozenset[str] = frozenset(),
) -> Replanned:
    """Return how the loads of a handover go on under another configuration.

    A load that nobody waits for goes on only where it has nobody to evict, and nobody's end to wait for, or
    where it is that of a protected model whose child has begun.

    Args:
        handover: what the scheduler before knew.
        models: those that are configured now.
        facts: of now; a model whose load has not begun its child yet need not run.
        make_room: the eviction planner of now, for which a model is never in its own way.
        protected: the models that keep their place now.
    """
    serving = {ticket.model for ticket in handover.served}
    running = facts.running | ((serving | {ticket.model for ticket in handover.loading}) & set(models))
    loading, refused = _judged(handover, models, running, facts.stopping, protected, make_room)
    targets = dict.fromkeys(ticket.model for ticket in loading)
    claimed = tuple(Resume(model, make_room(model, running) - serving - targets.keys()) for model in targets)
    evicted = frozenset[str]().union(*(load.evict for load in claimed))
    kept: set[str] = set()
    begun = facts.running - facts.stopping
    ended = {ticket.model for ticket, _ in refused} - serving - targets.keys()
    for model in sorted(handover.unclaimed - serving - targets.keys()):
        stays = model in models and model not in evicted
        if stays and (model in protected & begun or not make_room(model, running | kept)):
            kept.add(model)
        else:
            ended.add(model)
    return Replanned(
        claimed=claimed,
        unclaimed=frozenset(kept),
        ended=frozenset(ended & set(models)),
        loading=tuple(loading),
        refused=tuple(refused),
    )


def _judged(
    handover: Handover,
    models: Collection[str],
    running: frozenset[str],
    stopping: frozenset[str],
    protected: frozenset[str],
    make_room: MakeRoom,
) -> tuple[list[Ticket], list[tuple[Ticket, Refusal]]]:
    """Return who waits for a load that may go on, and who for one that may not."""
    unmoved = stopping.union(ticket.model for ticket in (*handover.served, *handover.loading))
    loading: list[Ticket] = []
    refused: list[tuple[Ticket, Refusal]] = []
    for ticket in handover.loading:
        refusal: Refusal | None = UnknownModel()
        if ticket.model in models:
            refusal = turned_away(ticket, running, unmoved, protected, make_room)
        if refusal is None:
            loading.append(ticket)
        else:
            refused.append((ticket, refusal))
    return loading, refused
