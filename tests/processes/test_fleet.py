"""A changed configuration meets servers that run."""

from __future__ import annotations

from collections.abc import Mapping

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from llamaswap.config.model import ModelConfig
from llamaswap.processes.fleet import Changed, Fleet, Moved
from llamaswap.processes.lifecycle import State
from llamaswap.processes.logbook import Logbook
from llamaswap.processes.server import ModelServer
from support.processes_fakes import FakeChildren, FakeProber, Outcome, a_model


class Yard:
    """A fleet on fakes."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.children = FakeChildren()
        self.prober = FakeProber(self.clock)
        self.changes: list[tuple[str, State]] = []
        self.fleet = Fleet(self._make, lambda name, _old, new: self.changes.append((name, new)))

    def _make(self, model: ModelConfig, changed: Changed, moved: Moved) -> ModelServer:
        return ModelServer(
            model,
            children=self.children,
            clock=self.clock,
            prober=self.prober,
            logbook=Logbook(),
            changed=changed,
            may_expire=lambda _name: True,
            moved=moved,
        )

    def configure(self, *models: ModelConfig) -> None:
        self.fleet.configure({model.id: model for model in models})

    def load(self, name: str) -> None:
        outcome = Outcome(self.fleet[name].ensure_ready())
        self.prober.answers(200)
        assert outcome.succeeded


def named(model_id: str, argv: tuple[str, ...] = ("serve",), **changes: object) -> ModelConfig:
    return a_model(id=model_id, argv=argv, **changes)


def states(yard: Yard) -> Mapping[str, str]:
    return yard.fleet.states()


def test_models_whose_configuration_is_the_same_keep_running() -> None:
    yard = Yard()
    yard.configure(named("a"), named("b"))
    yard.load("a")
    child = yard.children.latest

    yard.configure(named("a"), named("b", ("other",)), named("c"))

    assert states(yard) == {"a": "ready", "b": "stopped", "c": "stopped"}
    assert child.signals == []


def test_a_change_that_no_child_can_see_restarts_nothing() -> None:
    yard = Yard()
    yard.configure(named("a", ttl=0))
    yard.load("a")

    yard.configure(named("a", ttl=5, aliases=("b",), name="new"))
    assert yard.fleet["a"].model.aliases == ("b",)
    assert yard.children.latest.signals == []

    yard.clock.advance(5.0)
    assert states(yard) == {"a": "stopping"}


def test_a_changed_model_that_is_idle_stops_at_once_and_starts_as_the_new_one() -> None:
    yard = Yard()
    yard.configure(named("a"))
    yard.load("a")
    old = yard.children.latest

    yard.configure(named("a", ("serve", "--new")))
    assert old.signals == ["TERM"]
    waiting = Outcome(yard.fleet["a"].ensure_ready())
    old.exits(0)
    yard.prober.answers(200)

    assert waiting.succeeded
    assert yard.children.latest.order.argv == ("serve", "--new")


def test_a_changed_model_that_is_in_use_stops_when_its_last_use_ends() -> None:
    yard = Yard()
    yard.configure(named("a"))
    yard.load("a")
    yard.fleet["a"].begin_use()
    yard.fleet["a"].begin_use()

    yard.configure(named("a", ("serve", "--new")))
    yard.fleet["a"].end_use()
    assert yard.children.latest.signals == []

    yard.fleet["a"].end_use()
    assert yard.children.latest.signals == ["TERM"]


def test_a_model_that_changes_while_it_loads_is_loaded_anew_for_those_who_wait() -> None:
    yard = Yard()
    yard.configure(named("a"))
    waiting = Outcome(yard.fleet["a"].ensure_ready())
    old = yard.children.latest

    yard.configure(named("a", ("serve", "--new")))
    assert old.signals == ["TERM"]
    old.exits(0)
    assert waiting.pending
    yard.prober.answers(200)

    assert waiting.succeeded
    assert yard.children.latest.order.argv == ("serve", "--new")


def test_a_removed_model_serves_to_the_end_and_counts_until_it_is_gone() -> None:
    yard = Yard()
    yard.configure(named("a"), named("b"))
    yard.load("a")
    yard.fleet["a"].begin_use()

    yard.configure(named("b"))
    assert yard.fleet.leaving("a")
    assert states(yard) == {"b": "stopped"}
    assert yard.fleet["a"].state is State.READY

    yard.fleet["a"].end_use()
    assert yard.children.latest.signals == ["TERM"]
    yard.children.latest.exits(0)
    assert "a" not in yard.fleet


def test_a_removed_model_that_comes_back_in_time_never_left() -> None:
    yard = Yard()
    yard.configure(named("a"))
    yard.load("a")
    yard.fleet["a"].begin_use()

    yard.configure()
    yard.configure(named("a"))
    yard.fleet["a"].end_use()

    assert states(yard) == {"a": "ready"}
    assert yard.children.latest.signals == []


def test_who_waits_for_a_removed_model_is_told() -> None:
    yard = Yard()
    yard.configure(named("a"))
    waiting = Outcome(yard.fleet["a"].ensure_ready())

    yard.configure()

    assert "no longer configured" in str(waiting.failure)


def test_a_shutdown_reaches_those_that_are_leaving() -> None:
    yard = Yard()
    yard.configure(named("a"), named("b"))
    yard.load("a")
    yard.fleet["a"].begin_use()
    yard.configure(named("b"))

    ended = Outcome(Deferred.fromCoroutine(yard.fleet.shutdown(3.0)))
    yard.children.latest.exits(0)

    assert ended.succeeded
