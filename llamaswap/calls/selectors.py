"""Choose a target for a selector: a virtual model id that stands for several.

Pure.  Knows the strategies and how many requests each target of a selector has;
what state a model is in is told by whoever made this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from llamaswap.config.model import SelectorConfig
from llamaswap.errors import Refusal

StateOf = Callable[[str], str | None]
"""The state of the model that a target means here, such as "ready"; None for a peer's."""

_UP = ("ready", "starting")
_GOING = frozenset({"stopping", "shutdown"})


class NoTarget(Refusal):
    """Every target of a selector is being stopped."""

    status = 503

    def __init__(self, selector: str) -> None:
        super().__init__(f'selector "{selector}" has no available spillover targets')


class Reservation:
    """A place at a selector's target, held from the choice until the response has ended.

    Whoever resolved the name gives it back; more than once does no harm.
    """

    __slots__ = ("_give_back",)

    def __init__(self, give_back: Callable[[], None] | None = None) -> None:
        self._give_back = give_back

    def release(self) -> None:
        """Give the place back."""
        give_back, self._give_back = self._give_back, None
        if give_back is not None:
            give_back()


@dataclass(frozen=True, slots=True)
class Choice:
    """The target that a request shall use instead of the selector's id."""

    target: str  # as configured: an id, an alias or a peer's model
    reservation: Reservation


class Selectors:
    """All selectors of a configuration, and what their targets have to do.

    Args:
        configs: by id.
        state_of: asked anew at each choice.
    """

    def __init__(self, configs: Mapping[str, SelectorConfig], state_of: StateOf) -> None:
        self._configs = configs
        self._state_of = state_of
        self._spills = {
            name: _Spill(config, state_of)
            for name, config in configs.items()
            if config.strategy == "spillover"
        }

    def __contains__(self, name: object) -> bool:
        """Whether a name is a selector's id."""
        return name in self._configs

    def choose(self, name: str) -> Choice:
        """Choose a target of the selector with this id.

        Raises:
            NoTarget: all of them are being stopped.
        """
        if name in self._spills:
            return self._spills[name].choose()
        config = self._configs[name]
        target = config.targets[0] if config.strategy == "pin" else self._warmest(config.targets)
        return Choice(target, Reservation())

    def _warmest(self, targets: tuple[str, ...]) -> str:
        """Return the first ready target, else the first starting one, else the first."""
        states = [self._state_of(target) for target in targets]
        return next((targets[states.index(state)] for state in _UP if state in states), targets[0])


class _Spill:
    """A selector that fills one target before it turns to the next."""

    def __init__(self, config: SelectorConfig, state_of: StateOf) -> None:
        self._config = config
        self._state_of = state_of
        self._held = dict.fromkeys(config.targets, 0)  # requests at each target
        self._turn = 0  # ties are taken in turn

    def choose(self) -> Choice:
        active, cold = self._sorted_out()
        least = min((self._held[target] for target in active), default=0)
        if active and (least < self._config.spillover or not cold):
            chosen = self._in_turn([target for target in active if self._held[target] == least])
        elif cold:
            chosen = cold[0]
        else:
            raise NoTarget(self._config.id)
        self._held[chosen] += 1
        return Choice(chosen, Reservation(lambda: self._give_back(chosen)))

    def _sorted_out(self) -> tuple[list[str], list[str]]:
        """Return the targets that are in use, and those that would have to be set going."""
        active: list[str] = []
        cold: list[str] = []
        for target in self._config.targets:
            state = self._state_of(target)
            if state in _GOING:
                continue
            (active if state in _UP or self._held[target] else cold).append(target)
        return active, cold

    def _in_turn(self, ties: list[str]) -> str:
        chosen = ties[self._turn % len(ties)]
        self._turn += 1
        return chosen

    def _give_back(self, target: str) -> None:
        self._held[target] -= 1
