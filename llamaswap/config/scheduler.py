"""`routing.scheduler`: who goes first, and how long and how many may wait.

Knows what the section says and which of its numbers can be; what a scheduler does with them
lives in `llamaswap.scheduling`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import MappingProxyType

from llamaswap.config.durations import seconds_of
from llamaswap.config.mistakes import below
from llamaswap.config.model import SchedulerConfig, SchedulerName, SerialSettings
from llamaswap.config.names import Names
from llamaswap.config.nodes import Node, Scalar, describe
from llamaswap.config.priorities import ANCHORS, resolved
from llamaswap.config.reading import Section, whole_of

LARGEST_BONUS = 99


def read_scheduler(section: Section, names: Names) -> SchedulerConfig:
    """Read the section; without it, the defaults."""
    settings = section.section("settings")
    use = section.text("use") or SchedulerName.FIFO
    if use not in set(SchedulerName):
        section.wrong("use", f"expected one of {', '.join(SchedulerName)}, got {use!r}")
        use = SchedulerName.FIFO
    config = SchedulerConfig(
        use=SchedulerName(use),
        configured=any(section.has(key) for key in ("use", "settings")),
        serial=_serial(settings.section("serial"), names),
        fifo_priority=_priorities(settings.section("fifo"), names),
    )
    _warn(settings.section("serial"), config)
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


def _serial(section: Section, names: Names) -> SerialSettings:
    defaults = SerialSettings()
    settings = SerialSettings(
        aging_divisor=_number(section, "agingDivisor", "seconds per point", defaults.aging_divisor),
        swap_affinity_bonus=_bonus(section, defaults.swap_affinity_bonus),
        swap_budget=_number(section, "swapBudgetSeconds", "seconds", defaults.swap_budget),
        width=_width(section, names),
        max_wait=_max_wait(section.section("maxWait")),
        max_queue=_max_queue(section.section("maxQueue")),
    )
    section.close()
    return settings


def _warn(section: Section, config: SchedulerConfig) -> None:
    """About settings that are lawful, and hardly meant."""
    serial = config.serial
    if config.use is not SchedulerName.SERIAL:
        ours = {
            "swapBudgetSeconds": serial.swap_budget,
            "width": serial.width,
            "maxWait": serial.max_wait,
            "maxQueue": serial.max_queue,
        }
        for key in (key for key, value in ours.items() if value):
            section.warn(key, f"has no effect under {config.use}")
    elif serial.aging_divisor == 0 and serial.swap_affinity_bonus > 0:
        what = (
            "without aging, the swap affinity bonus can keep a request for a model that is not loaded "
            "waiting for ever"
        )
        section.warn("agingDivisor", what)


def _number(section: Section, key: str, unit: str, default: float) -> float:
    node = section.node(key)
    if node is None:
        return default
    value = node.value if isinstance(node, Scalar) else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        section.wrong(key, f"expected {unit}, a number from 0, got {describe(node)}")
        return default
    return float(value)


def _bonus(section: Section, default: int) -> int:
    node = section.node("swapAffinityBonus")
    if node is None:
        return default
    value = _whole(node)
    if value is None or not 0 <= value <= LARGEST_BONUS:
        what = f"expected points, a whole number from 0 to {LARGEST_BONUS}, got {describe(node)}"
        section.wrong("swapAffinityBonus", what)
        return default
    return value


def _width(section: Section, names: Names) -> MappingProxyType[str, int]:
    """By model; a width of 1, which every other model has, is left out."""
    widths: dict[str, int] = {}
    for model, entry in resolved(section.named("width"), names, section.report):
        value = _whole(entry.node)
        if value is None or value < 1:
            what = f"expected requests at a time, a whole number from 1, got {describe(entry.node)}"
            section.report.wrong(entry.node.place, entry.path, what)
        elif value > 1:
            widths[model] = value
    return MappingProxyType(widths)


def _max_wait(section: Section) -> MappingProxyType[str, float]:
    """Seconds by band; 0, which bounds nothing, is left out."""
    waits = {
        band: seconds_of(node, below(section.path, band), section.report) for band, node in _bands(section)
    }
    return MappingProxyType({band: seconds for band, seconds in waits.items() if seconds})


def _max_queue(section: Section) -> MappingProxyType[str, int]:
    """Requests by band; 0, which bounds nothing, is left out."""
    most: dict[str, int] = {}
    for band, node in _bands(section):
        value = _whole(node)
        if value is None or value < 0:
            section.wrong(band, f"expected requests, a whole number from 0, got {describe(node)}")
        elif value:
            most[band] = value
    return MappingProxyType(most)


def _bands(section: Section) -> Iterator[tuple[str, Node]]:
    """What is said of each band; a key that is none is a mistake, for its bound would be missed."""
    for band in ANCHORS:
        node = section.node(band)
        if node is not None:
            yield band, node
    strays = section.unread()
    for entry in strays:
        guess = section.report.guess(entry.name, ANCHORS)
        what = f"{entry.name[:60]!r} is no band: expected one of {', '.join(ANCHORS)}{guess}"
        section.report.wrong(entry.place, entry.path, what)
    section.close(*(entry.name for entry in strays))


def _whole(node: Node) -> int | None:
    """A number that is written as a whole one."""
    value = node.value if isinstance(node, Scalar) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None
