"""Children, probes and clocks that do what a test says, when it says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.python.failure import Failure

from llamaswap.config.model import ModelConfig
from llamaswap.processes.child import CannotStart, Ending, Order
from llamaswap.processes.health import Answer, Question
from llamaswap.processes.lifecycle import State
from llamaswap.processes.logbook import Logbook
from llamaswap.processes.server import ModelServer

FIRST_PID = 4001


def a_model(**changes: Any) -> ModelConfig:
    """A model that can be started, with `changes`."""
    facts: dict[str, Any] = {
        "id": "m",
        "cmd": "serve",
        "argv": ("serve",),
        "proxy": "http://127.0.0.1:5800",
        "unload_timeout": 10,
        "health_check_timeout": 120,
    }
    return ModelConfig(**{**facts, **changes})


@dataclass(eq=False)
class FakeChild:
    """A child that lives until the test says otherwise; a `Child`."""

    pid: int
    order: Order
    output: Callable[[bytes], None]
    ended: Callable[[Ending], None]
    signals: list[str] = field(default_factory=list)
    alive: bool = True
    rest_asked: bool = False  # whether those who outlive it are to go, too

    def terminate(self) -> None:
        """Notes the signal and lives on."""
        self.signals.append("TERM")

    def terminate_rest(self) -> None:
        """Notes it."""
        self.rest_asked = True

    def kill(self) -> None:
        """Notes the signal and lives on."""
        self.signals.append("KILL")

    def says(self, text: str) -> None:
        """It writes a line."""
        self.output(text.encode() + b"\n")

    def exits(self, code: int = 0) -> None:
        """It ends by itself."""
        self._ends(Ending(f"exited with code {code}", clean=code == 0))

    def is_killed(self, signal: str = "9 (SIGKILL)") -> None:
        """It ends by a signal."""
        self._ends(Ending(f"was killed by signal {signal}", clean=False))

    def _ends(self, ending: Ending) -> None:
        assert self.alive, "a child ends only once"
        self.alive = False
        self.ended(ending)


@dataclass
class FakeChildren:
    """Starts fake children; a `ChildRunner`."""

    started: list[FakeChild] = field(default_factory=list)
    refusal: str = ""  # why nothing can be started; empty = it can
    refused_as: type[CannotStart] = CannotStart
    closed: bool = False

    def spawn(
        self, order: Order, output: Callable[[bytes], None], ended: Callable[[Ending], None]
    ) -> FakeChild:
        """Start one, or refuse."""
        if self.refusal:
            raise self.refused_as(self.refusal)
        child = FakeChild(FIRST_PID + len(self.started), order, output, ended)
        self.started.append(child)
        return child

    def close(self) -> Deferred[None]:
        """Notes it."""
        self.closed = True
        return succeed(None)

    @property
    def latest(self) -> FakeChild:
        """The child that was started last."""
        return self.started[-1]

    @property
    def alive(self) -> list[FakeChild]:
        """Those that have not ended."""
        return [child for child in self.started if child.alive]


class FakeProber:
    """Keeps each question until the test answers it, or its time is up; a `Prober`."""

    def __init__(self, clock: Clock) -> None:
        self.asked: list[Question] = []
        self._clock = clock
        self._open: list[Deferred[Answer]] = []

    def ask(self, question: Question, timeout: float) -> Deferred[Answer]:
        """Take a question in."""
        self.asked.append(question)
        answer: Deferred[Answer] = Deferred(self._closed)
        timer = self._clock.callLater(timeout, self._late, answer)
        answer.addBoth(_disarm, timer)
        self._open.append(answer)
        return answer

    @property
    def questions(self) -> int:
        """How many wait for an answer."""
        return len(self._open)

    def answers(self, status: int | None, error: str = "") -> None:
        """Answer all open questions alike."""
        waiting, self._open = self._open, []
        for answer in waiting:
            answer.callback(Answer(status, error))

    def _late(self, answer: Deferred[Answer]) -> None:
        self._closed(answer)
        answer.callback(Answer(None, "no answer"))

    def _closed(self, answer: Deferred[Answer]) -> None:
        if answer in self._open:
            self._open.remove(answer)


class Rig:
    """One `ModelServer` among fakes, with everything that it told."""

    def __init__(self, clock: Clock | None = None, **changes: Any) -> None:
        self.clock = clock or Clock()
        self.children = FakeChildren()
        self.prober = FakeProber(self.clock)
        self.logbook = Logbook()
        self.changes: list[tuple[State, State]] = []
        self.on_change: Callable[[State, State], None] = lambda old, new: None
        self.may_expire = True
        self.server = ModelServer(
            a_model(**changes),
            children=self.children,
            clock=self.clock,
            prober=self.prober,
            logbook=self.logbook,
            changed=self._changed,
            may_expire=lambda _model: self.may_expire,
        )

    @property
    def child(self) -> FakeChild:
        """The child that was started last."""
        return self.children.latest

    def becomes_healthy(self) -> None:
        """The open question is answered with 200."""
        self.prober.answers(200)

    def load(self) -> FakeChild:
        """Bring the server to `ready`; gives the child that serves."""
        outcome = Outcome(self.server.ensure_ready())
        self.becomes_healthy()
        assert outcome.succeeded
        return self.child

    def _changed(self, _model: str, old: State, new: State) -> None:
        self.changes.append((old, new))
        self.on_change(old, new)


class Outcome:
    """What became of a Deferred, looked at without waiting; swallows its failure."""

    def __init__(self, deferred: Deferred[None]) -> None:
        self.times = 0
        self.failure: BaseException | None = None
        self.deferred = deferred
        deferred.addCallbacks(self._success, self._failure)

    @property
    def pending(self) -> bool:
        """Nothing became of it yet."""
        return self.times == 0

    @property
    def succeeded(self) -> bool:
        """It fired with success."""
        return self.times > 0 and self.failure is None

    def _success(self, _result: None) -> None:
        self.times += 1

    def _failure(self, failure: Failure) -> None:
        self.times += 1
        self.failure = failure.value


def _disarm(result: Answer | Failure, timer: Any) -> Answer | Failure:
    if timer.active():
        timer.cancel()
    return result
