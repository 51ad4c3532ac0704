"""An explanation as text for people: a label, then its lines.

Knows words and layout; what is explained comes ready.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from llamaswap.config.model import Filters, GroupConfig, ModelConfig
from llamaswap.tools.dump import free_form
from llamaswap.tools.explain import Eviction, Explanation

INDENT = 16
"""The column in which the lines begin."""

OVERRIDES = "the request says X-LlamaSwap-Evict: protected"

Item: TypeAlias = tuple[str, Iterable[str]]
"""A label and its lines; without lines it is left out."""


def describe(explanation: Explanation, answer: Eviction | None) -> str:
    """Return the text, with a line end.

    Args:
        explanation: of the model.
        answer: to a question about what runs, if one was asked.
    """
    model = explanation.model
    items = [*_about(model), *_starting(explanation), *_sharing(explanation), *_serving(explanation)]
    if answer is not None:
        items.append((f"with {_names(answer.running)} running", [_stops(answer)]))
    return "".join(line + "\n" for line in (_printable(model.id), *_laid_out(items)))


def _about(model: ModelConfig) -> list[Item]:
    return [
        ("name", [model.name] if model.name.strip() else []),
        ("description", model.description.split("\n") if model.description.strip() else []),
        ("aliases", [", ".join(model.aliases)] if model.aliases else []),
        ("listed", ["no, but it can be asked for"] if model.unlisted else []),
    ]


def _starting(explanation: Explanation) -> list[Item]:
    model = explanation.model
    check = model.check_endpoint.strip()
    ready = "as soon as it runs" if check == "none" else f"{check or '/'} answers 200"
    return [
        ("command", [shlex.quote(word) for word in model.argv] or ["none: it can't be started"]),
        ("stop command", [model.cmd_stop] if model.cmd_stop.strip() else ["none: SIGTERM"]),
        ("environment", model.env or ["as it is"]),
        ("URL", [model.proxy or "none: it can't be used"]),
        ("port", [str(explanation.port)] if explanation.port is not None else []),
        ("ready when", [f"{ready}, within {model.health_check_timeout} s" if check != "none" else ready]),
    ]


def _sharing(explanation: Explanation) -> list[Item]:
    stopped = [other for other, stops in explanation.evicts.items() if stops]
    spared = [other for other, stops in explanation.evicts.items() if not stops]
    return [
        ("group", [] if explanation.group is None else [_group(explanation.group)]),
        ("sets", [] if explanation.sets is None else [", ".join(explanation.sets) or "none: it runs alone"]),
        ("loading stops", [_names(stopped)]),
        ("but not", [_names(spared)] if spared else []),
        *_protection(explanation),
    ]


def _protection(explanation: Explanation) -> Iterator[Item]:
    if explanation.yields_to:
        yield "refused", [f"while {' or '.join(explanation.yields_to)} runs, unless {OVERRIDES}"]
    if explanation.model.protected:
        yield "protected", [f"it makes way for another model only if {OVERRIDES}"]


def _serving(explanation: Explanation) -> list[Item]:
    model, default = explanation.model, explanation.default_priority
    limit = "any number of requests" if explanation.limit is None else f"{explanation.limit} requests"
    sent = [f"model is sent as {model.use_model_name!r}"] if model.use_model_name else []
    steps = [*sent, *_filters(model.filters)]
    return [
        ("filters", [f"{number}. {step}" for number, step in enumerate(steps, 1)]),
        ("limit", [f"{limit} at a time, waiting ones included"]),
        ("width", [f"{explanation.width} requests run together"] if explanation.width > 1 else []),
        ("priority", [str(explanation.priority)] if explanation.priority else []),
        ("default", [f"priority {default}, if the request says none"] if default else []),
        ("ttl", [f"{model.ttl} s without a request" if model.ttl > 0 else "stays loaded"]),
        ("stopping", [f"killed if it takes more than {model.unload_timeout} s"]),
        ("timeouts", [_timeouts(model)]),
    ]


def _filters(filters: Filters) -> Iterator[str]:
    """In the order in which they are applied to a request's body."""
    if filters.strip:
        yield f"without {', '.join(filters.strip)}"
    if filters.set:
        yield f"with {_values(filters.set)}"
    for name, chosen in filters.set_by_id.items():
        if chosen:
            yield f"asked for as {name!r}: with {_values(chosen)}"


def _values(chosen: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{key} = {json.dumps(free_form(chosen[key]), ensure_ascii=False)}" for key in sorted(chosen)
    )


def _group(group: GroupConfig) -> str:
    members = "one member at a time" if group.swap else "members stay together"
    others = "unloads other groups" if group.exclusive else "leaves other groups alone"
    kept = ", is not unloaded by them" if group.persistent else ""
    return f"{group.id} ({members}, {others}{kept}): {_names(group.members)}"


def _timeouts(model: ModelConfig) -> str:
    limits = {
        "connect": model.timeouts.connect,
        "response header": model.timeouts.response_header,
        "idle connection": model.timeouts.idle_conn,
    }
    return ", ".join(f"{name} {f'{limit} s' if limit > 0 else 'none'}" for name, limit in limits.items())


def _stops(answer: Eviction) -> str:
    held = f"; {_names(answer.protected)} only if {OVERRIDES}" if answer.protected else ""
    return f"loading stops {_names(answer.stop)}{held}"


def _names(models: Iterable[str]) -> str:
    return ", ".join(models) or "nothing"


def _laid_out(items: Iterable[Item]) -> Iterator[str]:
    for label, lines in items:
        head = f"  {label}"
        for line in lines:
            yield f"{_printable(head):{INDENT}}  {_printable(line)}".rstrip()
            head = ""


def _printable(text: str) -> str:
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
