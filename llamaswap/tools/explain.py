"""What one model's configuration comes to, and what would stop if it were loaded.

Answers from a configuration alone; what really runs at the moment is not its subject.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from llamaswap.config.mistakes import Report
from llamaswap.config.model import DEFAULT_CONCURRENCY_LIMIT, Config, GroupConfig, ModelConfig, SchedulerName
from llamaswap.scheduling.guarding import protected_models
from llamaswap.scheduling.matrix import MatrixPlanner
from llamaswap.scheduling.registry import make_planner
from llamaswap.tools.dump import model_settings


class NoSuchModel(Exception):
    """A name that is neither a local model nor an alias; `str()` says so, with a guess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One model, and what follows for it from the rest of the configuration."""

    model: ModelConfig
    port: int | None  # of its URL; None where that names none
    limit: int | None  # requests of this model at a time, waiting ones included; None = any number
    priority: int  # that the configuration adds to a request's own
    default_priority: int  # of a request of which neither header nor caller says one
    width: int  # requests that `serial` lets run together; 1 = one after the other, or not `serial`
    group: GroupConfig | None  # None with the matrix router
    sets: tuple[str, ...] | None  # names of the sets that it is in; None with the group router
    evicts: Mapping[str, bool]  # whether loading it stops this other model, if that alone runs
    yields_to: tuple[str, ...]  # those of them that are protected: while one runs, it is not loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Eviction:
    """An eviction question and its answer, in real model ids."""

    target: str
    running: tuple[str, ...]  # sorted
    stop: tuple[str, ...]  # sorted; a part of `running`
    protected: tuple[str, ...]  # sorted; a part of `stop`, because of which the request is refused


def explain(config: Config, name: str) -> Explanation:
    """Explain the model that a name stands for.

    Raises:
        NoSuchModel: the name is no local model's.
    """
    model = config.models[model_id(config, name)]
    make_room = make_planner(config)
    evicts = {
        other: bool(make_room(model.id, frozenset({other}))) for other in config.models if other != model.id
    }
    return Explanation(
        model=model,
        port=_port(model),
        limit=_limit(config, model),
        priority=_priority(config, model),
        default_priority=config.priorities.models.get(model.id, 0),
        width=_width(config, model),
        group=next((group for group in config.groups if model.id in group.members), None),
        sets=MatrixPlanner(config.matrix).sets_with(model.id) if config.matrix is not None else None,
        evicts=evicts,
        yields_to=_protected(config, (other for other, stops in evicts.items() if stops)),
    )


def eviction(config: Config, name: str, running: Sequence[str]) -> Eviction:
    """Say what stops when a model is loaded while others run; each is given by id or alias.

    Raises:
        NoSuchModel: one of the names is no local model's.
    """
    target = model_id(config, name)
    present = frozenset(model_id(config, one) for one in running)
    stop = make_planner(config)(target, present)
    return Eviction(
        target=target,
        running=tuple(sorted(present)),
        stop=tuple(sorted(stop)),
        protected=_protected(config, stop),
    )


def model_id(config: Config, name: str) -> str:
    """Return the id of the local model that a name stands for.

    Raises:
        NoSuchModel: it stands for none.
    """
    if name in config.models:
        return name
    if name in config.names:
        return config.names[name]
    for kind, known in (("selector", config.selectors), ("peer", config.peers)):
        if name in known:
            raise NoSuchModel(f"{name!r} is a {kind}, not a model of this server")
    guess = Report().guess(name, (*config.models, *config.names))
    raise NoSuchModel(f"{name!r} is no model or alias in this configuration{guess}")


def explanation_facts(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation for programs; `settings` are the model's part of a dump.

    What llama-swap doesn't know is only there when it is in use.
    """
    ours: dict[str, Any] = {}
    if explanation.default_priority:
        ours["defaultPriority"] = explanation.default_priority
    if explanation.width > 1:
        ours["width"] = explanation.width
    if explanation.yields_to:
        ours["yieldsTo"] = list(explanation.yields_to)
    group = explanation.group
    return {
        "model": explanation.model.id,
        "settings": model_settings(explanation.model),
        "port": explanation.port,
        "limit": explanation.limit,
        "priority": explanation.priority,
        **ours,
        "group": None if group is None else group.id,
        "sets": None if explanation.sets is None else list(explanation.sets),
        "evicts": [other for other, stops in explanation.evicts.items() if stops],
    }


def eviction_facts(answer: Eviction) -> dict[str, Any]:
    """Return an eviction question and its answer for programs; `protected` is only there if somebody is."""
    ours = {"protected": list(answer.protected)} if answer.protected else {}
    return {"target": answer.target, "running": list(answer.running), "stop": list(answer.stop), **ours}


def _protected(config: Config, models: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(protected_models(config.models).intersection(models)))


def _port(model: ModelConfig) -> int | None:
    try:
        return urlsplit(model.proxy).port
    except ValueError:
        return None


def _priority(config: Config, model: ModelConfig) -> int:
    is_fifo = config.scheduler.use is SchedulerName.FIFO
    return config.scheduler.fifo_priority.get(model.id, 0) if is_fifo else 0


def _width(config: Config, model: ModelConfig) -> int:
    is_serial = config.scheduler.use is SchedulerName.SERIAL
    return config.scheduler.serial.width.get(model.id, 1) if is_serial else 1


def _limit(config: Config, model: ModelConfig) -> int | None:
    if model.concurrency_limit > 0:
        return model.concurrency_limit
    return None if config.scheduler.use is SchedulerName.SERIAL else DEFAULT_CONCURRENCY_LIMIT
