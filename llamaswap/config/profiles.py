"""`profiles`: named sets of pins, each sending one requested name to a target."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from llamaswap.config.mistakes import Report, below
from llamaswap.config.model import ProfileConfig
from llamaswap.config.names import Names
from llamaswap.config.nodes import Mapping, describe
from llamaswap.config.reading import Named, Section, text_of


def read_profiles(
    entries: Iterable[Named], names: Names, selectors: frozenset[str], report: Report
) -> tuple[ProfileConfig, ...]:
    """Read all profiles, sorted by name."""
    return tuple(
        _profile(entry, names, selectors, report) for entry in sorted(entries, key=lambda entry: entry.name)
    )


def _profile(entry: Named, names: Names, selectors: frozenset[str], report: Report) -> ProfileConfig:
    if not isinstance(entry.node, Mapping):
        report.wrong(entry.place, entry.path, f"expected description and pins, got {describe(entry.node)}")
        return ProfileConfig(id=entry.name)
    if not entry.name.strip():
        report.wrong(entry.place, entry.path, "expected a name")
    section = Section(entry.node, entry.place, entry.path, report)
    pins: dict[str, str] = {}
    for pin in section.named("pins"):
        target = text_of(pin.node, pin.path, report) or ""
        _check_pin(pin, target, names, selectors, report)
        pins[pin.name] = target
    profile = ProfileConfig(
        id=entry.name, description=section.text("description"), pins=MappingProxyType(pins)
    )
    section.close()
    if not section.named("pins"):
        report.wrong(section.place_of("pins"), below(entry.path, "pins"), "expected at least one pin")
    return profile


def _check_pin(pin: Named, target: str, names: Names, selectors: frozenset[str], report: Report) -> None:
    if not pin.name.strip():
        report.wrong(pin.place, pin.path, "expected the name that is asked for")
    elif pin.name in names.qualified:
        report.wrong(pin.place, pin.path, f"{pin.name!r} is a peer's model and can't be pinned")
    if target and target not in selectors and names.destination(target) is None:
        report.wrong(pin.node.place, pin.path, names.why_not(target, report))
