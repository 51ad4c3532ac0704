"""Targets of selectors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.calls.selectors import Choice, NoTarget, Selectors
from llamaswap.config.model import SelectorConfig


class Bench:
    """Selectors over models whose states a test sets; targets with a slash are a peer's."""

    def __init__(self, strategy: str, targets: str = "a b c", spillover: int = 1) -> None:
        config = SelectorConfig(
            id="s", strategy=strategy, targets=tuple(targets.split()), spillover=spillover
        )
        self.states: dict[str, str] = {}
        self.selectors = Selectors({"s": config}, self._state)

    def _state(self, target: str) -> str | None:
        return None if "/" in target else self.states.get(target, "stopped")

    def choose(self) -> Choice:
        """Choose, and let the model start as it would."""
        choice = self.selectors.choose("s")
        if "/" not in choice.target:
            self.states[choice.target] = "ready"
        return choice

    def targets(self, times: int) -> str:
        """Requests that all stay."""
        return " ".join(self.choose().target for _ in range(times))


def test_only_ids_of_selectors_are_selectors() -> None:
    selectors = Bench("pin").selectors
    assert "s" in selectors
    assert "a" not in selectors


def test_a_pin_always_takes_the_first_target() -> None:
    bench = Bench("pin")
    bench.states = {"a": "stopping", "b": "ready"}
    assert bench.selectors.choose("s").target == "a"


@pytest.mark.parametrize(
    ("states", "target"),
    [
        ({}, "a"),
        ({"c": "ready"}, "c"),
        ({"b": "ready", "c": "ready"}, "b"),
        ({"a": "starting", "c": "ready"}, "c"),
        ({"b": "starting", "c": "starting"}, "b"),
        ({"a": "stopping", "b": "shutdown"}, "a"),
    ],
)
def test_warm_takes_what_is_ready_then_what_is_starting_then_the_first(
    states: dict[str, str], target: str
) -> None:
    bench = Bench("warm")
    bench.states = states
    assert bench.selectors.choose("s").target == target


def test_spillover_fills_one_target_before_it_starts_the_next() -> None:
    assert Bench("spillover", spillover=2).targets(6) == "a a b b c c"


def test_spillover_without_a_free_or_cold_target_goes_round() -> None:
    served = Bench("spillover").targets(9).split()
    assert [sorted(served[at : at + 3]) for at in (0, 3, 6)] == [["a", "b", "c"]] * 3


def test_spillover_goes_back_to_a_target_whose_request_has_ended() -> None:
    bench = Bench("spillover")
    first, second = bench.choose(), bench.choose()
    assert (first.target, second.target) == ("a", "b")

    first.reservation.release()
    first.reservation.release()
    assert bench.targets(2) == "a c"


def test_equally_busy_targets_take_turns() -> None:
    bench = Bench("spillover", "a b")
    bench.states = {"a": "ready", "b": "starting"}
    choices = []
    for _ in range(4):
        choice = bench.choose()
        choices.append(choice.target)
        choice.reservation.release()
    assert choices == ["a", "b", "a", "b"]


def test_targets_that_are_going_are_skipped() -> None:
    bench = Bench("spillover")
    bench.states = {"a": "stopping", "b": "shutdown"}
    assert bench.targets(2) == "c c"


def test_no_target_left_is_a_refusal() -> None:
    bench = Bench("spillover", "a")
    held = bench.choose()
    bench.states = {"a": "stopping"}

    with pytest.raises(NoTarget) as caught:
        bench.choose()

    assert (caught.value.status, caught.value.message) == (
        503,
        'selector "s" has no available spillover targets',
    )
    held.reservation.release()


def test_a_peer_is_cold_until_it_has_a_request() -> None:
    bench = Bench("spillover", "p/x a")
    first = bench.choose()
    assert (first.target, bench.choose().target) == ("p/x", "a")

    first.reservation.release()
    assert bench.choose().target == "p/x"


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 3))
def test_no_target_is_over_its_limit_while_another_has_room(steps: list[int], limit: int) -> None:
    bench = Bench("spillover", spillover=limit)
    held: list[Choice] = []
    for step in steps:
        if step < 6 or not held:
            busy = {name: sum(choice.target == name for choice in held) for name in "abc"}
            choice = bench.choose()
            assert busy[choice.target] < limit or min(busy.values()) >= limit
            held.append(choice)
        else:
            held.pop(step % len(held)).reservation.release()
