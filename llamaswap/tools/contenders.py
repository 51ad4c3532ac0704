"""The settings that `simulate` plays side by side, from the words of its command line.

Settings are read by the reader of configurations, so that both take the same and complain alike.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import yaml

from llamaswap.config.load import load_text
from llamaswap.config.mistakes import ConfigRejected
from llamaswap.config.model import Config, SchedulerConfig, SchedulerName, SerialSettings
from llamaswap.simulation.records import Unusable
from llamaswap.simulation.scenario import Scenario, describe

FIELDS = {
    "agingDivisor": "aging_divisor",
    "swapAffinityBonus": "swap_affinity_bonus",
    "swapBudgetSeconds": "swap_budget",
    "width": "width",
}
"""What may be set, and its field in `SerialSettings`; limits of waits and queues are not played."""

FIFO, DEFAULTS, AS_CONFIGURED = "fifo", "serial", "config"
"""Words of `--against` that are no settings."""


def contenders(box: Scenario, changes: Sequence[str], against: Sequence[str]) -> list[Scenario]:
    """Return what is to be played: `fifo`, what it is compared with, and last the settings in question.

    Args:
        box: as configured.
        changes: `KEY=VALUE` each, on top of the serial settings of the box.
        against: `fifo`, `serial` (its defaults), `config` (the scheduler of the box as it is), or
            `KEY=VALUE,...` on top of the box's settings.

    Raises:
        Unusable: a word can't be understood, or a value can't be.
    """
    base = box.scheduler
    wanted = [_serial(base, with_changes(base.serial, box.config, changes, "--set"))]
    others = [_against(box, words) for words in against]
    schedulers = [*others, *wanted]
    played = [with_parallel(box, schedulers).baseline()]
    played += [with_parallel(box, schedulers).under(one, name_of(one)) for one in schedulers]
    # The same settings may have been asked for twice.
    return list({scenario.name: scenario for scenario in played}.values())


def with_parallel(box: Scenario, schedulers: Sequence[SchedulerConfig]) -> Scenario:
    """Return the box with servers that take as many requests at once as the widest of these settings.

    Whoever compares widths compares them on one box: its servers are as parallel under every setting.
    """
    parallel = {model: box.parallel_of(model) for model in box.config.models}
    for scheduler in schedulers:
        for model, width in scheduler.serial.width.items():
            parallel[model] = max(parallel[model], width)
    return replace(box, parallel=parallel)


def name_of(scheduler: SchedulerConfig) -> str:
    """Name a scheduler by its settings, its widths included: `serial 60/10 chat x4`."""
    widths = scheduler.serial.width if scheduler.use is SchedulerName.SERIAL else {}
    return " ".join([describe(scheduler), *(f"{model} x{width}" for model, width in sorted(widths.items()))])


def with_changes(
    settings: SerialSettings, config: Config, changes: Sequence[str], where: str
) -> SerialSettings:
    """Return settings with `KEY=VALUE` each changed; `width.MODEL=N` is a key of its own.

    Raises:
        Unusable: as for `contenders`.
    """
    given: dict[str, Any] = {}
    for words in changes:
        key, equals, value = words.partition("=")
        name, dot, model = key.strip().partition(".")
        if not equals or name not in FIELDS or bool(dot) != (name == "width"):
            known = ", ".join(key if key != "width" else "width.MODEL" for key in FIELDS)
            raise Unusable(f"{where}: expected KEY=VALUE with one of {known}, got {words!r}")
        if dot:
            given.setdefault(name, {})[model] = _scalar(value, where)
        else:
            given[name] = _scalar(value, where)
    read = _read(given, config, where)
    fields: dict[str, Any] = {FIELDS[name]: getattr(read, FIELDS[name]) for name in given}
    if "width" in fields:
        # A width of 1, which is none, takes one away that was there.
        named = {config.names.get(model, model) for model in given["width"]}
        kept = {model: width for model, width in settings.width.items() if model not in named}
        fields["width"] = {**kept, **fields["width"]}
    return replace(settings, **fields)


def _against(box: Scenario, words: str) -> SchedulerConfig:
    if words == FIFO:
        return box.baseline().scheduler
    if words == AS_CONFIGURED:
        return box.scheduler
    if words == DEFAULTS:
        return _serial(box.scheduler, SerialSettings())
    return _serial(
        box.scheduler, with_changes(box.scheduler.serial, box.config, words.split(","), "--against")
    )


def _serial(base: SchedulerConfig, settings: SerialSettings) -> SchedulerConfig:
    return replace(base, use=SchedulerName.SERIAL, configured=True, serial=settings)


def _scalar(text: str, where: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise Unusable(f"{where}: {text!r} is no value") from None


def _read(settings: Mapping[str, Any], config: Config, where: str) -> SerialSettings:
    models: dict[str, dict[str, Any]] = {
        model: {"cmd": "-", "proxy": "http://-", "aliases": []} for model in config.models
    }
    for alias, model in config.names.items():
        models[model]["aliases"].append(alias)
    scheduler = {"use": SchedulerName.SERIAL.value, "settings": {"serial": settings}}
    text = json.dumps({"models": models, "routing": {"scheduler": scheduler}})
    try:
        return load_text(text, file=where).scheduler.serial
    except ConfigRejected as rejected:
        told = "; ".join(
            f"{mistake.path.rpartition('serial.')[2]}: {mistake.what}" for mistake in rejected.mistakes
        )
        raise Unusable(f"{where}: {told}") from rejected
