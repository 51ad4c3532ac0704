"""`groups`, `matrix` and `routing`: who may be loaded together.

Knows both spellings, old (top level) and new (`routing.router`).  Who goes first is read by
`scheduler`; what the planners do with it lives in `llamaswap.scheduling`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from llamaswap.config.groups import read_groups, share_a_group
from llamaswap.config.matrix import ReadMatrix, read_matrix
from llamaswap.config.mistakes import Report
from llamaswap.config.model import GroupConfig, MatrixConfig, SchedulerConfig
from llamaswap.config.names import Names
from llamaswap.config.nodes import Mapping
from llamaswap.config.reading import Section
from llamaswap.config.scheduler import read_scheduler

ROUTERS = ("group", "matrix")


@dataclass(frozen=True, slots=True)
class Routing:
    """The routing part of a configuration; one of `groups` and `matrix` is in use."""

    scheduler: SchedulerConfig
    router: str = "group"
    groups: tuple[GroupConfig, ...] = ()
    matrix: ReadMatrix | None = field(default=None)

    @property
    def matrix_config(self) -> MatrixConfig | None:
        return None if self.matrix is None else self.matrix.config

    def coexist(self, models: frozenset[str]) -> bool:
        """Whether these models (real ids) can be loaded at the same time."""
        if self.matrix is not None:
            return self.matrix.allows(models)
        return share_a_group(self.groups, models)


def read_routing(root: Section, names: Names, report: Report) -> Routing:
    """Read the three sections that say how models share the box."""
    routing = root.section("routing")
    router = routing.section("router")
    settings = router.section("settings")
    scheduler = read_scheduler(routing.section("scheduler"), names)
    use = router.text("use")
    if use and use not in ROUTERS:
        router.wrong("use", f"expected one of {', '.join(ROUTERS)}, got {use!r}")
    is_old, is_new = _is_used(root), bool(use) or _is_used(settings)
    if is_old and is_new:
        key = "matrix" if root.has("matrix") else "groups"
        root.wrong(key, "is also configured under routing.router; keep one of the two")
    if is_old and root.has("matrix") and _has_groups(root):
        root.wrong("matrix", "groups and matrix exclude each other")
    owner = root if is_old else settings
    chosen = use or ("matrix" if is_old and root.has("matrix") else "group")
    settings.close("groups", "matrix")
    router.close()
    routing.close()
    if chosen != "matrix":
        owner.has("matrix")
        return Routing(scheduler, "group", read_groups(owner, names, report))
    if not owner.has("matrix"):
        router.wrong("use", "expected settings.matrix with it")
        return Routing(scheduler)
    _check_groups_shape(owner)
    return Routing(scheduler, "matrix", (), read_matrix(owner.section("matrix"), names.models, report))


def _is_used(section: Section) -> bool:
    return section.has("matrix") or _has_groups(section)


def _has_groups(section: Section) -> bool:
    node = section.node("groups")
    return node is not None and not (isinstance(node, Mapping) and not node.entries)


def _check_groups_shape(section: Section) -> None:
    """With the matrix in use, groups need no sense, but still a shape."""
    for group in section.named("groups"):
        Section(group.node, group.place, group.path, section.report)
