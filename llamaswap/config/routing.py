"""`groups`, `matrix` and `routing`: who may be loaded together, and who goes first.

Knows both spellings, old (top level) and new (`routing.router`).  What the planners and
schedulers do with it lives in `llamaswap.scheduling`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import MappingProxyType

from llamaswap.config.groups import read_groups, share_a_group
from llamaswap.config.matrix import ReadMatrix, read_matrix
from llamaswap.config.mistakes import Report
from llamaswap.config.model import GroupConfig, MatrixConfig, SchedulerConfig, SchedulerName, SerialSettings
from llamaswap.config.names import Names
from llamaswap.config.nodes import Mapping, Scalar, describe
from llamaswap.config.reading import Section, whole_of

ROUTERS = ("group", "matrix")
LARGEST_BONUS = 99


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
    scheduler = _scheduler(routing.section("scheduler"), names)
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


def _scheduler(section: Section, names: Names) -> SchedulerConfig:
    settings = section.section("settings")
    use = section.text("use") or SchedulerName.FIFO
    if use not in set(SchedulerName):
        section.wrong("use", f"expected one of {', '.join(SchedulerName)}, got {use!r}")
        use = SchedulerName.FIFO
    config = SchedulerConfig(
        use=SchedulerName(use),
        configured=any(section.has(key) for key in ("use", "settings")),
        serial=_serial(settings.section("serial")),
        fifo_priority=_priorities(settings.section("fifo"), names),
    )
    if config.use is SchedulerName.SERIAL:
        _warn_of_starvation(settings.section("serial"), config.serial)
    settings.close()
    section.close()
    return config


def _priorities(section: Section, names: Names) -> MappingProxyType[str, int]:
    priorities: dict[str, int] = {}
    for entry in section.named("priority"):
        number = whole_of(entry.node, entry.path, section.report, "a whole number")
        if names.local(entry.name) is None:
            section.report.wrong(entry.place, entry.path, f"{entry.name!r} is no model or alias here")
        elif entry.name not in names.models:
            what = f"has no effect under an alias; write {names.local(entry.name)!r}"
            section.report.warn(entry.place, entry.path, what)
        priorities[entry.name] = number or 0
    section.close()
    return MappingProxyType(priorities)


def _serial(section: Section) -> SerialSettings:
    defaults = SerialSettings()
    settings = SerialSettings(
        aging_divisor=_aging_divisor(section, defaults.aging_divisor),
        swap_affinity_bonus=_bonus(section, defaults.swap_affinity_bonus),
    )
    section.close()
    return settings


def _warn_of_starvation(section: Section, settings: SerialSettings) -> None:
    if settings.aging_divisor == 0 and settings.swap_affinity_bonus > 0:
        what = (
            "without aging, the swap affinity bonus can keep a request for a model that is not loaded "
            "waiting for ever"
        )
        section.warn("agingDivisor", what)


def _aging_divisor(section: Section, default: float) -> float:
    node = section.node("agingDivisor")
    if node is None:
        return default
    value = node.value if isinstance(node, Scalar) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        section.wrong("agingDivisor", f"expected seconds per point, a number from 0, got {describe(node)}")
        return default
    return float(value)


def _bonus(section: Section, default: int) -> int:
    node = section.node("swapAffinityBonus")
    if node is None:
        return default
    value = node.value if isinstance(node, Scalar) else None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST_BONUS:
        what = f"expected points, a whole number from 0 to {LARGEST_BONUS}, got {describe(node)}"
        section.wrong("swapAffinityBonus", what)
        return default
    return value
