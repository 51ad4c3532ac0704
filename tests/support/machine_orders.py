"""What people tell the queue of the whole machine, stand still, go on, move, go away; and what comes of it.

Also whoever does not like to wait, and whoever ends a model that must stay.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any

from llamaswap.processes.lifecycle import State
from llamaswap.queueing import QueuePage
from llamaswap.scheduling.vocabulary import Band, QueueView, Ticket, band_of
from support.machine import House
from support.machine_parts import LATE, key_of
from support.processes_fakes import FakeChild

NAMES = {"interactive": 100, "normal": 0, "batch": -100}


@dataclass(frozen=True, slots=True)
class Wish:
    """What a client can say of its request."""

    model: str
    priority: str = ""
    stream: bool = False
    key: str = "op"
    patience: str = ""  # for how long it may wait
    evicts: bool = False  # also protected models

    def header(self) -> str:
        """The fields that only some clients send."""
        wait = f"X-LlamaSwap-Max-Wait: {self.patience}\r\n" if self.patience else ""
        return wait + ("X-LlamaSwap-Evict: protected\r\n" if self.evicts else "")


class Desk:
    """Takes orders to a house, and remembers what they came to.

    Attributes:
        paused: what is held up.
        wrong: orders that came to something else than they should have.
    """

    def __init__(self, house: House) -> None:
        self.house = house
        self.paused: frozenset[Band] = frozenset()
        self.wrong: list[str] = []
        self._ending: list[str] = []  # the models that an operator ends just now
        self._since: dict[str, float] = {}  # when each model came into its state
        self._seen: set[int] = set()  # jobs
        self._stood: frozenset[Band] = frozenset()  # what was held up at the last look
        self._went: list[int] = []  # tickets, as they were dispatched
        self._box: Any = house.rig.service.engine.dispatcher._box
        house._patch.setattr(self._box, "_dispatched", partial(self._goes, self._box._dispatched))
        ends = partial(self._ends, FakeChild.terminate)
        house._patch.setattr(FakeChild, "terminate", lambda child: ends(child))
        fleet: Any = house.rig.service.engine.fleet
        house._patch.setattr(fleet, "_tell", partial(self._changed, fleet._tell))

    # --- orders --------------------------------------------------------------------------------------------

    def holds(self, verb: str, bands: set[Band], key: str) -> None:
        """Pause bands, or let them go on."""
        query = f"?band={','.join(sorted(bands))}" if bands else ""
        serial = self.house.plan.scheduler == "serial" or (verb == "resume" and bool(self.paused))
        if self._order(f"POST /api/scheduler/{verb}{query}", key, 200 if serial else 409):
            meant = frozenset(bands or Band)
            self.paused = self.paused | meant if verb == "pause" else self.paused - meant

    def moves(self, place: int, priority: int | str, key: str) -> None:
        """Give one who waits another priority."""
        serial, number = self.house.plan.scheduler == "serial", self._somebody(place)
        body = json.dumps({"priority": priority}).encode()
        due = 409 if not serial else 404 if number is None else 200
        if self._order(f"PATCH /api/queue/{number or 0}", key, due, body):
            self.house.moved += 1
            wanted = NAMES.get(str(priority), priority)
            found = [ticket for ticket in (*self._waiting(), *self._view().jobs) if ticket.number == number]
            self.wrong += [f"{number} was moved to {wanted}: {t}" for t in found if t.priority != wanted]

    def sends_away(self, place: int, key: str) -> None:
        """End one who waits."""
        number = self._somebody(place)
        due = 404 if number is None else 200
        if self._order(f"DELETE /api/queue/{number or 0}", key, due):
            self.wrong += [f"{number} waits on" for ticket in self._waiting() if ticket.number == number]

    def unloads(self, path: str, models: list[str]) -> None:
        """End models' servers."""
        self._ending = models
        self.house.looks(path)
        self._ending = []

    def receives(self, wish: Wish) -> None:
        """Somebody comes: he waits if there is a place for him, and is turned away only if there is none."""
        before = self._depths()
        guest = self.house.chats(
            wish.model, wish.priority, stream=wish.stream, key=wish.key, more=wish.header()
        )
        plan, after = self.house.plan, self._depths()
        most = (plan.scheduler == "serial" and plan.max_queue) or 1_000
        over = [band for band in Band if after[band] > max(most, before[band])]
        self.wrong += [f"{band} has {after[band]}, {most} may wait" for band in over]
        if b'"band_full"' in guest.talk.raw and max(before.values()) < most:
            self.wrong.append(f"turned away, though {before} wait and {most} may")
        if b'"model_protected"' in guest.talk.raw and (wish.evicts or not self._is_held_off(wish.model)):
            self.wrong.append(f"{wish} was refused, and nobody protected is in its way")

    def _order(self, head: str, key: str, due: int, body: bytes = b"") -> bool:
        """Give an order; returns whether it was obeyed, as it should have been."""
        if key == "low" and self.house.plan.callers:
            due = 403
        status = self.house.looks(head, key_of(key), body).talk.status
        if status != due:
            self.wrong.append(f"{head} was answered {status}, not {due}")
        return status == 200

    def _is_held_off(self, model: str) -> bool:
        plan, there = self.house.plan, {job.model for job in self._view().jobs}
        there |= self._alive()
        return any(not plan.allows({model, other}) for other in there & plan.protected)

    def _alive(self) -> set[str]:
        return {child.order.argv[1] for child in self.house.rig.children.alive}

    # --- what is seen --------------------------------------------------------------------------------------

    def looks_around(self) -> list[str]:
        """After each step: what is wrong with the queue."""
        found, self.wrong = self.wrong, []
        view, plan = self._view(), self.house.plan
        if view.paused != self.paused:
            found.append(f"{set(view.paused)} are paused, not {set(self.paused)}")
        news = [job for job in view.jobs if job.number not in self._seen]
        held = self.paused & self._stood
        found += [f"{job} went though its band is paused" for job in news if band_of(job.priority) in held]
        self._seen, self._stood = {job.number for job in view.jobs}, self.paused
        page = self._page()
        found += self._what_the_page_says(page, view)
        if self.house.only_serial:
            found += self._who_waits_too_long()
        if plan.scheduler == "serial" and plan.width > 1:
            found += self._who_could_join(page, view)
        return found

    def foretold(self) -> list[int]:
        """The order in which all who wait will go, where nothing that is still to come can change it."""
        house, plan, page = self.house, self.house.plan, self._page()
        in_turn = house.preloads and not house.only_serial  # preloads that come one after the other
        if not page.serial or plan.budget or plan.protected or in_turn or self._box.loads._doubts._ends:
            return []
        going = [row for row in page.tickets if not row.paused]
        self._went.clear()
        return [] if any(row.max_wait is not None for row in going) else [row.ticket.number for row in going]

    def goes_otherwise(self, foretold: list[int]) -> str:
        """What is wrong with the order in which they have gone since."""
        went = [number for number in self._went if number in foretold]
        due = [number for number in foretold if number in went]
        return "" if went == due else f"{foretold} should have gone, and {went} did"

    def _goes(self, dispatched: Any, ticket: Ticket, *how: Any) -> None:
        self._went.append(ticket.number)
        dispatched(ticket, *how)

    def _page(self) -> QueuePage:
        return self.house.rig.service.engine.dispatcher.queueing.queue(limit=1_000)

    def _what_the_page_says(self, page: QueuePage, view: QueueView) -> list[str]:
        numbers = [row.ticket.number for row in page.tickets]
        found = []
        if sorted(numbers) != sorted(ticket.number for ticket in self._waiting()):
            found.append(f"the page shows {numbers}")
        if {row.ticket.number for row in page.jobs} != {job.number for job in view.jobs}:
            found.append(f"the page shows the jobs {page.jobs}")
        still = [row.paused for row in page.tickets]
        if still != sorted(still):
            found.append(f"those who are held up do not come last: {still}")
        if sorted(row.position for row in page.tickets) != list(range(1, len(numbers) + 1)) and page.serial:
            found.append(f"places are {[row.position for row in page.tickets]}")
        late = [row for row in page.tickets if row.max_wait is not None and row.waited > row.max_wait]
        return found + [f"waits longer than it may: {row}" for row in late]

    def _who_waits_too_long(self) -> list[str]:
        """By what each of them said itself, whatever the queue makes of it."""
        engine = self.house.rig.service.engine
        now = engine.dispatcher._clock.seconds()
        return [
            f"{waiter.ticket} still waits, and wanted {waiter.wish.max_wait}"
            for waiter in engine.dispatcher._waiters.values()
            if waiter.verdict is None
            and waiter.wish.max_wait is not None
            and now > waiter.ticket.arrived + waiter.wish.max_wait
        ]

    def _who_could_join(self, page: QueuePage, view: QueueView) -> list[str]:
        """The best of all waits for the model that runs, and there is a place beside its jobs."""
        engine = self.house.rig.service.engine
        box, models = engine.dispatcher._box, {job.model for job in view.jobs}
        if not 0 < len(view.jobs) < self.house.plan.width or len(models) > 1:
            return []
        (model,) = models
        serving = model in self.house.plan.models and all(
            job.number in box.measures.serving for job in view.jobs
        )
        first = [row.ticket for row in page.tickets if row.position == 1 and not row.paused]
        if serving and box.scheduler.resident(model, box.facts()) and [one.model for one in first] == [model]:
            return [f"{first[0]} waits beside {view.jobs}"]
        return []

    def _changed(self, tell: Any, model: str, old: State, new: State) -> None:
        """A model's server has come into another state: one that must stay ends for a reason only."""
        now = self.house.rig.reactor.seconds()
        since, self._since[model] = self._since.get(model, now), now
        plan = self.house.plan
        if new is State.STOPPING and model in plan.protected and model not in self._ending:
            self.wrong += self._without_a_reason(model, old, now - since)
        tell(model, old, new)

    def _ends(self, terminate: Any, child: FakeChild) -> None:
        """A child is told to end; while it starts, its server does not say so."""
        model, now = child.order.argv[1], self.house.rig.reactor.seconds()
        server = self.house.rig.service.engine.fleet.get(model)
        starting = server is not None and server.state is State.STARTING
        if starting and model in self.house.plan.protected and model not in self._ending:
            self.wrong += self._without_a_reason(model, State.STARTING, now - self._since.get(model, 0.0))
        terminate(child)

    def _without_a_reason(self, model: str, old: State, lasted: float) -> list[str]:
        house, plan = self.house, self.house.plan
        server = house.rig.service.engine.fleet.get(model)
        if server is None or model not in plan.models or house.rig.stopped is not None:
            return []
        child = next(c for c in house.rig.children.alive if c.order.argv[1] == model)
        outdated = child.order.argv[2] != f"v{plan.models[model]}"
        late = old is State.STARTING and lasted >= LATE
        idle = old is State.READY and 0 < server.model.ttl <= lasted
        sent = any(job.overrides and not plan.allows({job.model, model}) for job in self._view().jobs)
        rival = any(not plan.allows({one, model}) for one in self._alive() & plan.protected)
        yields = old is State.STARTING and rival  # of two that are protected
        return (
            []
            if outdated or late or idle or sent or yields
            else [f"{model} is protected, and ends: it was {old}"]
        )

    def _view(self) -> QueueView:
        return self.house.rig.service.engine.view()

    def _depths(self) -> dict[Band, int]:
        return {band: one.depth for band, one in self._view().bands.items()}

    def _waiting(self) -> list[Ticket]:
        waiters = self.house.rig.service.engine.dispatcher._waiters.values()
        return [waiter.ticket for waiter in waiters if waiter.verdict is None]

    def _somebody(self, place: int) -> int | None:
        waiting = self._waiting()
        return waiting[place % len(waiting)].number if waiting else None
