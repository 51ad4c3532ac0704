"""What must stop before a model may run, by llama-swap's group rules.

For a target T of group G, a running model R of group H must stop when

    H is G      and G swaps its members, or
    H is not G  and G is exclusive and H is not persistent.

`persistent` protects only against other groups.  A model of a non-exclusive
group evicts nobody of other groups, but the next request for an exclusive
group's model evicts it, even when that model is ready.
"""

from __future__ import annotations

from collections.abc import Sequence

from llamaswap.config.model import GroupConfig


class GroupPlanner:
    """The eviction question for configurations with groups.

    Args:
        groups: all groups, the implicit `(default)` included; a model is in one at most.
    """

    def __init__(self, groups: Sequence[GroupConfig]) -> None:
        self._group_of = {member: group for group in groups for member in group.members}

    def make_room(self, target: str, running: frozenset[str]) -> frozenset[str]:
        """Return the models of `running` that must stop before `target` may run.

        A model in no group is one that the configuration does not know any more: it must always stop.
        """
        group = self._group_of[target]
        return frozenset(model for model in running if model != target and self._evicts(group, model))

    def _evicts(self, group: GroupConfig, model: str) -> bool:
        other = self._group_of.get(model)
        if other is None:
            return True
        if other is group:
            return group.swap
        return group.exclusive and not other.persistent
