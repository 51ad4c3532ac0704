"""What a stub has been asked to be, as values.

What any of them does to the world is the other modules' business.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How it answers who asks whether it is ready."""

    load: float = 0.0  # seconds after its start at which it is
    code: int = 200  # what it says then
    lag: float = 0.0  # seconds that each answer takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """How it starts and how it ends."""

    bind_at: float = 0.0  # seconds after its start; before, connections are refused
    die_at: float | None = None  # seconds after its start
    code: int = 1  # exit code of that
    sig: int | None = None  # signal of that, instead
    ignore_term: bool = False
    term_lag: float = 0.0  # seconds between SIGTERM and its end
    fork: int = 0  # shells around it
    vram: tuple[str, str] | None = None  # file that is locked, and the size that is claimed


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """Who is let in."""

    key: str | None = None
    key_but_health: bool = False
    only: tuple[str, ...] = ()  # paths that exist; none = all


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    """How it answers requests for inference; a request can change each of these for itself, with `X-Stub`."""

    tokens: int = 5
    gap: float = 0.0  # seconds between two of them, streamed or not
    first: float = 0.0  # seconds of silence before the first one, head included
    status: int = 200
    hang: bool = False  # never answer
    usage: dict[str, Any] | None = None  # None = counted; {} = left out
    timings: dict[str, Any] | None = None
    big_line: int = 0  # bytes of one more event
    split: bool = False
    done: bool = True
    crlf: bool = False
    tight: bool = False  # no space after `data:`
    comments: int = 0  # comment lines before the first event
    stamp: bool = False  # each event tells when it was sent
    error_at: int | None = None  # an error event instead of this token, and nothing after it
    drop_at: int | None = None  # the connection is closed instead of this token
    reset_at: int | None = None  # the same with a reset
    die_on: int | None = None  # the process ends instead of this token
    gzip: bool = False
    cors: str | None = None
    fill: int | None = None  # a plain body of so many bytes
    file: str | None = None  # its content is the body
    type: str | None = None  # content type of `file` or `fill`
    sizes: tuple[int, ...] = ()  # of the pieces that a body is written in, over and over
    framing: str = ""  # chunked, length or close, instead of what is usual
    headers: tuple[tuple[str, str], ...] = ()  # more of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One start of the stub."""

    host: str
    port: int
    alias: str
    start: int  # the how manieth, from 1
    record: str | None
    log_rate: float  # lines a second
    health: Health
    life: Life
    doors: Doors
    manner: Manner


def options_of(given: argparse.Namespace, start: int) -> Options:
    """What the switches come to at the nth start, from 1."""
    values = {name: _at(value, start) for name, value in vars(given).items()}
    values["done"] = not values.pop("no_done")
    health = {name: values.pop(f"health_{name}") for name in ("code", "lag")}
    return Options(
        host=given.host,
        port=given.port,
        alias=given.alias,
        start=start,
        record=given.record,
        log_rate=values["log_rate"] or 0.0,
        health=_filled(Health(), {"load": values["load"], **health}),
        life=_filled(Life(), values | {"vram": tuple(given.vram) if given.vram else None}),
        doors=_filled(Doors(), values | {"only": tuple(given.only.split(",")) if given.only else ()}),
        manner=_filled(Manner(), values),
    )


def wished(manner: Manner, wishes: dict[str, Any]) -> Manner:
    """The manner of one request: `X-Stub` is a JSON object of `Manner`'s fields.

    Raises:
        ValueError: a field that there is not.
    """
    unknown = wishes.keys() - {field.name for field in fields(Manner)}
    if unknown:
        raise ValueError(f"X-Stub: unknown {', '.join(sorted(unknown))}")
    lists = {name: tuple(wishes[name]) for name in ("sizes",) if name in wishes}
    if "headers" in wishes:
        lists["headers"] = tuple((name, value) for name, value in wishes["headers"])
    return replace(manner, **{**wishes, **lists})


def _at(value: Any, start: int) -> Any:
    """The value for one start; one of several, if they are several."""
    return value[min(start, len(value)) - 1] if isinstance(value, tuple) else value


def _filled(part: T, values: dict[str, Any]) -> T:
    """A part with its fields set to what was given; whole numbers where it has whole numbers."""
    found: dict[str, Any] = {}
    for field in fields(part):
        value = values.get(field.name)
        if value is not None:
            found[field.name] = int(value) if "int" in str(field.type) and isinstance(value, float) else value
    return replace(part, **found)
