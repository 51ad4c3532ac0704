"""Make `etc/traces/office.csv`: an afternoon on one GPU, invented, the same for the same seed.

Six hours.  People chat and somebody looks at each answer; two coding assistants ask in flurries; every now
and then somebody orders a series of renders; documents are indexed at the half hour.  Runs as a script.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import TextIO

HOURS = 6
SEED = 7


@dataclass(frozen=True, slots=True, order=True)
class Request:
    """One line of the trace; seconds in tenths."""

    arrival: float
    model: str
    priority: str
    run: float
    user: str


def office(seed: int = SEED) -> list[Request]:
    """Return the whole afternoon, in the order of time."""
    made = [*chats(Random(f"{seed} chat")), *coding(Random(f"{seed} code"))]
    made += [*renders(Random(f"{seed} render")), *indexing(Random(f"{seed} index"))]
    end = HOURS * 3600
    return sorted(request for request in made if request.arrival < end)


def chats(random: Random) -> Iterator[Request]:
    """Conversations of a few messages, each sent when the answer before it has been read."""
    at, number = 0.0, 0
    while at < HOURS * 3600:
        at += random.expovariate(1 / 180)
        number += 1
        moment = at
        for _ in range(1 + int(random.expovariate(1 / 4))):
            yield request(
                moment, "chat", "interactive", random.lognormvariate(1.5, 0.6), f"person{number % 9}"
            )
            moment += 15 + random.expovariate(1 / 45)


def coding(random: Random) -> Iterator[Request]:
    """Flurries: an assistant reads, edits and tests until its task is done."""
    at, number = 0.0, 0
    while at < HOURS * 3600:
        at += random.expovariate(1 / 400)
        number += 1
        moment = at
        for _ in range(4 + int(random.expovariate(1 / 8))):
            yield request(
                moment, "coder", "normal", random.lognormvariate(1.8, 0.7), f"assistant{number % 2}"
            )
            moment += 4 + random.expovariate(1 / 12)


def renders(random: Random) -> Iterator[Request]:
    """A series of pictures, ordered all at once."""
    for hour in (0.4, 1.5, 2.6, 3.5, 4.6):
        moment = hour * 3600 + random.uniform(-300, 300)
        for _ in range(random.randint(8, 14)):
            yield request(moment, "painter", "batch", random.uniform(45, 110), "studio")
            moment += 0.5


def indexing(random: Random) -> Iterator[Request]:
    """Documents to be embedded, handed over in one go."""
    for half_hour in range(1, HOURS * 2):
        moment = half_hour * 1800 + random.uniform(0, 120)
        for _ in range(random.randint(60, 120)):
            yield request(moment, "embedder", "batch", random.uniform(0.2, 0.9), "archive")
            moment += 0.1


def request(at: float, model: str, priority: str, run: float, user: str) -> Request:
    """Return a line; a tenth of a second is as exact as an invention needs to be."""
    return Request(round(at, 1), model, priority, max(0.1, round(run, 1)), user)


def write(requests: list[Request], out: TextIO) -> None:
    """Write a trace that `llama-swap simulate` reads."""
    table = csv.writer(out, lineterminator="\n")
    table.writerow(["arrival_s", "model", "priority", "run_s", "user"])
    for one in requests:
        table.writerow([one.arrival, one.model, one.priority, one.run, one.user])


if __name__ == "__main__":
    write(office(), sys.stdout)
