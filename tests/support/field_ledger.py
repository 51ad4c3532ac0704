"""What a run of cases has done to daemons, and what became of it: sums over all cases.

Knows calls and records, not how they are made; the driver fills it, and
`field_report` prints it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

from support.field_call import Call

FAULTY_WISHES = {
    "drop_at": "connection to a server closed in an answer",
    "reset_at": "connection to a server reset in an answer",
    "error_at": "error told in the middle of a stream",
    "die_on": "server died in the middle of its answer",
    "hang": "server that never answers",
}
"""What a request may ask of its stub that is a fault, and what that is called."""

LEAVING = {
    "fin": "client left (FIN)",
    "rst": "client left (RST)",
    "half": "client closed its own side only",
}

LOST = "lost"
"""What becomes of a request that should not become of any."""

SUMS = ("daemons", "recoveries")
COUNTERS = ("faults", "requests", "processes")
EXTREMES = ("memory", "descriptors", "recovery")


@dataclass(frozen=True, slots=True)
class Extreme:
    """The largest value of something, and the case that had it."""

    value: float = 0.0
    case: str = ""

    def or_more(self, value: float, case: str) -> Extreme:
        """The larger one."""
        return Extreme(value, case) if value > self.value else self


@dataclass(slots=True)
class Ledger:
    """Sums over all cases so far.

    Attributes:
        case: the test that is played.
        closing: whether what is done now only ends it.
        faults: by kind.
        requests: by what became of them; `lost` has neither an answer nor a client that left.
        memory: bytes more than at the base line.
        descriptors: more than at the base line.
        recovery: seconds from the end of a server to the next whole answer, its load included.
        notes: further measured facts, as a case words them.
        losses: each request that was lost, and each process that was left behind, in words.
    """

    case: str = ""
    closing: bool = False
    daemons: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)
    processes: Counter[str] = field(default_factory=Counter)
    memory: Extreme = field(default_factory=Extreme)
    descriptors: Extreme = field(default_factory=Extreme)
    recovery: Extreme = field(default_factory=Extreme)
    recoveries: int = 0
    notes: dict[str, str] = field(default_factory=dict)
    losses: list[str] = field(default_factory=list)

    def wished(self, stub: Mapping[str, Any] | None) -> None:
        """A request asks its stub for a fault."""
        for name, words in FAULTY_WISHES.items():
            if stub and stub.get(name) not in (None, False):
                self.faults[words] += 1

    def signalled(self, name: str) -> None:
        """A signal was sent to a daemon or to a child."""
        if not self.closing:
            self.faults[f"signal {name} from outside"] += 1

    def ended(self, calls: Sequence[Call], notes: Sequence[Mapping[str, Any]], *, alive: bool) -> None:
        """A daemon's clients and stubs are done.

        Args:
            calls: all of them, before those that are under way are ended.
            notes: what the stubs have recorded.
            alive: whether the daemon still runs.
        """
        self.daemons += 1
        for call in calls:
            if call.client.sent:
                fate = became_of(call, alive=alive)
                self.requests.update(["sent", fate])
                if fate == LOST:
                    self.losses.append(f"{self.case}: {call.client}")
                if call.client.left_how is not None:
                    self.faults[LEAVING[call.client.left_how]] += 1
        ends = list(ends_of_servers(notes))
        self.processes["started"] += sum(note["event"] == "started" for note in notes)
        self.processes["crashed or killed"] += len(ends)
        self.faults["server crashed by itself"] += sum(note["event"] == "died" for note in notes)
        self.faults["server ignored SIGTERM"] += sum(bool(note.get("ignored")) for note in notes)
        for seconds in recoveries(calls, ends):
            self.recoveries += 1
            self.recovery = self.recovery.or_more(seconds, self.case)

    def leaked(self, words: Sequence[str]) -> None:
        """A process of this command line has outlived its daemon."""
        self.processes["leaked"] += 1
        self.losses.append(f"{self.case}: left behind: {' '.join(words)}")

    def grown(self, memory: int, descriptors: int) -> None:
        """A daemon holds so much more than at its base line, in bytes and in number."""
        self.memory = self.memory.or_more(memory, self.case)
        self.descriptors = self.descriptors.or_more(descriptors, self.case)

    def wrong(self) -> list[str]:
        """What no whole run may have, in words."""
        leaked = self.processes["leaked"]
        return [*self.losses, *([f"processes leaked: {leaked}"] if leaked else [])]

    # --- sums of several processes -------------------------------------------------------------------------

    def told(self) -> dict[str, Any]:
        """All sums in plain words and numbers, as one process tells them to another."""
        return {
            **{name: getattr(self, name) for name in SUMS},
            **{name: dict(getattr(self, name)) for name in COUNTERS},
            **{name: astuple(getattr(self, name)) for name in EXTREMES},
            "notes": dict(self.notes),
            "losses": list(self.losses),
        }

    def add(self, told: Mapping[str, Any]) -> None:
        """Add what another process has told."""
        for name in SUMS:
            setattr(self, name, getattr(self, name) + told[name])
        for name in COUNTERS:
            getattr(self, name).update(told[name])
        for name in EXTREMES:
            setattr(self, name, getattr(self, name).or_more(*told[name]))
        self.notes.update(told["notes"])
        self.losses += told["losses"]


def became_of(call: Call, *, alive: bool) -> str:
    """What became of a request that was sent."""
    client = call.client
    if client.left_at is not None:
        return "left by its client"
    if not client.is_over:
        return "under way at the end of its case"
    if client.complete:
        return "answered" if client.status < 400 else "refused with a reason"
    if client.status:
        return "cut off so that it shows"
    if call.excuse:
        return call.excuse
    return LOST if alive else "ended with its daemon"


def ends_of_servers(notes: Iterable[Mapping[str, Any]]) -> Iterable[float]:
    """The moments at which stubs ended that had not been told to, as they noted them."""
    return (float(note["at"]) for note in notes if note["event"] == "died")


def recoveries(calls: Sequence[Call], ends: Iterable[float]) -> Iterable[float]:
    """For each end, the seconds until somebody who waited then, or came later, had an answer begun."""
    served = sorted(
        (call.client.head, call.client.sent)
        for call in calls
        if call.client.head is not None and call.client.complete and call.status == 200
    )
    for end in ends:
        after = next(((head, sent) for head, sent in served if head > end), None)
        if after is not None:
            yield after[0] - max(end, after[1])


LEDGER = Ledger()
"""Of this process, which plays one case after the other; what other processes tell is added."""
