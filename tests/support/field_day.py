"""A day in the life of a whole daemon in memory, in seconds: swaps, TTLs, hang-ups, crashes and reloads.

The daemon is real but for its sockets and its processes.  What the fakes remember is forgotten as time goes
by, so that whatever grows is the daemon's.
"""

from __future__ import annotations

import gc
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from support.machine import House
from support.machine_parts import Plan
from support.machine_truth import TRUTHS
from support.real_daemon_processes import descriptors, own_memory

HOUR = 3600.0  # simulated seconds
IDLE = 150.0  # seconds in which every idle connection is closed
PLAN = Plan(models={"a": 1, "b": 1, "c": 1}, more="captureBuffer: 0")  # which takes a day to fill


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """What there is after each hour."""

    objects: int  # that Python's collector knows
    memory: int  # bytes of this process's own
    descriptors: int
    timers: int


class Day:
    """One daemon and its day.

    Args:
        pause: simulated seconds between two events, on average.
    """

    def __init__(self, house: House, seed: int, pause: float) -> None:
        self.requests = 0
        self.house = house
        self._dice = random.Random(seed)
        self._pause = pause
        self._plan = PLAN

    def hours(self, count: int) -> Iterator[Hour]:
        """Let so many go by; tells after each what there is."""
        clock = self.house.rig.reactor
        for number in range(count):
            while clock.seconds() < (number + 1) * HOUR:
                self._event()
                clock.advance(self._dice.expovariate(1 / self._pause))
            self._calm_down()
            gc.collect()
            yield Hour(
                objects=len(gc.get_objects()),
                memory=own_memory(os.getpid()),
                descriptors=len(descriptors(os.getpid())),
                timers=len(clock.getDelayedCalls()),
            )

    def _event(self) -> None:
        """One thing happens; nearly always a request."""
        events: list[tuple[Callable[[], None], int]] = [
            (self._served, 70),
            (self._left_early, 10),
            (self._left_in_the_middle, 10),
            (self._crash, 4),
            (self._deaf, 2),
            (self._unload, 2),
            (self._reload, 2),
        ]
        (event,) = self._dice.choices([one for one, _ in events], [weight for _, weight in events])
        event()

    def _served(self) -> None:
        self._asks()
        self.house.serves_a_round()
        self.house.serves_a_round()

    def _left_early(self) -> None:
        self.house.leaves(self.house.guests[self._asks()], rudely=self._dice.random() < 0.5)

    def _left_in_the_middle(self) -> None:
        place = self._asks()
        self.house.stopped_ones_end()
        self.house.health(200)
        while self.house.wanted_lines():
            self.house.connects()
        for line in self.house.asked():
            self.house.says(line, "begun")
        self.house.leaves(self.house.guests[place])

    def _crash(self) -> None:
        self._asks()
        for child in self.house.rig.children.alive:
            self.house.ends(child, 1, wires_first=self._dice.random() < 0.5)

    def _deaf(self) -> None:
        self.house.deaf.update(self.house.rig.children.alive)
        self._asks()

    def _unload(self) -> None:
        self.house.looks("GET /unload")

    def _reload(self) -> None:
        version = 3 - self._plan.models["b"]
        self._plan = replace(PLAN, models={**PLAN.models, "b": version})
        self.house.reload(self._plan)

    def _asks(self) -> int:
        """Somebody asks for a model; returns the place of that guest."""
        self.requests += 1
        model, priority = self._dice.choice("aabc"), self._dice.choice(["", "batch", "interactive"])
        self.house.chats(model, priority, stream=self._dice.random() < 0.5)
        return len(self.house.guests) - 1

    def _calm_down(self) -> None:
        """Everybody is served; what holds at any moment held; then the fakes forget."""
        house = self.house
        while not house.is_idle():
            house.serves_a_round()
        assert [found for truth in TRUTHS if (found := truth(house))] == []
        house.looks("GET /unload")
        for _ in range(2):  # deaf ones are killed in the first
            house.passes(IDLE)
            for _ in range(3):
                house.serves_a_round()
        house.passes(IDLE)
        house.forgets()
