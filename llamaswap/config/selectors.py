"""`selectors`: virtual model ids, each with the targets it may choose from.

Knows what a selector needs to be sound; how one is chosen at run time is not its subject.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from llamaswap.config.mistakes import Report
from llamaswap.config.model import SelectorConfig
from llamaswap.config.names import Names
from llamaswap.config.reading import Named, Section, Word, entry_section

STRATEGIES = ("warm", "pin", "spillover")

MOST_SELECTORS = 500

Coexist: TypeAlias = Callable[[frozenset[str]], bool]
"""Whether these models (real ids) can be loaded at the same time."""


def read_selectors(
    entries: Iterable[Named], names: Names, coexist: Coexist, report: Report
) -> tuple[SelectorConfig, ...]:
    """Read all selectors, sorted by id."""
    entries = sorted(entries, key=lambda entry: entry.name)
    ids = frozenset(entry.name for entry in entries)
    if len(entries) > MOST_SELECTORS:
        report.wrong(entries[0].place, "selectors", f"expected at most {MOST_SELECTORS}, got {len(entries)}")
        return ()
    return tuple(_Reader(entry, names, ids, report).read(coexist) for entry in entries)


class _Reader:
    def __init__(self, entry: Named, names: Names, ids: frozenset[str], report: Report) -> None:
        self._entry = entry
        self._names = names
        self._ids = ids
        self._report = report
        self._section: Section = entry_section(entry, report)

    def read(self, coexist: Coexist) -> SelectorConfig:
        section = self._section
        settings = section.section("settings")
        targets = section.words("targets")
        config = SelectorConfig(
            id=self._entry.name,
            strategy=section.text("strategy"),
            targets=tuple(word.text for word in targets),
            spillover=settings.whole("spillover", 1),
            name=section.text("name"),
            description=section.text("description"),
            unlisted=section.flag("unlisted"),
            metadata=section.free("metadata"),
        )
        self._check_id()
        self._check_strategy(config, settings)
        self._check_targets(config.strategy, targets)
        if config.strategy == "spillover":
            self._check_spillover(targets, coexist)
        settings.close()
        section.close()
        return config

    def _check_id(self) -> None:
        name = self._entry.name
        if not name.strip():
            self._wrong("expected a name")
        elif self._names.is_taken(name) or name in self._names.qualified:
            self._wrong(f"{name!r} is already the name of a model")

    def _check_strategy(self, config: SelectorConfig, settings: Section) -> None:
        if config.strategy not in STRATEGIES:
            given = f"got {config.strategy!r}" if config.strategy else "got nothing"
            self._section.wrong("strategy", f"expected one of {', '.join(STRATEGIES)}, {given}")
        if config.strategy == "spillover" and config.spillover < 1:
            settings.wrong("spillover", f"expected requests from 1, got {config.spillover}")

    def _check_targets(self, strategy: str, targets: tuple[Word, ...]) -> None:
        if not targets:
            self._section.wrong("targets", "expected at least one model")
        for word in targets:
            if word.text in self._ids:
                self._report.wrong(word.place, word.path, f"{word.text!r} is a selector itself")
            elif self._names.destination(word.text) is None:
                self._report.wrong(word.place, word.path, self._names.why_not(word.text, self._report))
            elif strategy == "warm" and self._names.local(word.text) is None:
                self._report.wrong(word.place, word.path, "the warm strategy takes local models only")

    def _check_spillover(self, targets: tuple[Word, ...], coexist: Coexist) -> None:
        seen: dict[str, Word] = {}
        for word in targets:
            destination = self._names.destination(word.text)
            if destination is None:
                continue
            if destination in seen:
                what = f"is the same model as {seen[destination].text!r}"
                self._report.wrong(word.place, word.path, what)
            seen[destination] = word
        local = frozenset(model for word in targets if (model := self._names.local(word.text)) is not None)
        if len(local) > 1 and not coexist(local):
            together = ", ".join(sorted(local))
            self._section.wrong("targets", f"these models can't be loaded together: {together}")

    def _wrong(self, what: str) -> None:
        self._report.wrong(self._entry.place, self._entry.path, what)
