"""The words that the schema is written in: settings as the loader accepts them.

Text may be any scalar, null means "not given" everywhere, and where a number or a flag is
wanted, a placeholder may stand, whose value nobody knows yet.  Knows no setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from llamaswap.config.durations import WAIT
from llamaswap.config.priorities import ANCHORS
from llamaswap.config.sizes import SIZE

Schema: TypeAlias = dict[str, Any]

DEFINITIONS: Mapping[str, Schema] = {
    "text": {"type": ["string", "number", "boolean", "null"]},
    "placeholder": {"type": "string", "pattern": r"\$\{[a-zA-Z0-9_.-]+\}"},
    "flag": {
        "anyOf": [
            {"type": ["boolean", "null"]},
            {"enum": ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON"]},
            {"enum": ["n", "N", "no", "No", "NO", "off", "Off", "OFF"]},
            {"$ref": "#/$defs/placeholder"},
        ]
    },
}
"""What settings refer to by `$ref`."""


def text(about: str, **more: Any) -> Schema:
    """Any scalar; it is read as text."""
    return {"$ref": "#/$defs/text", "description": about, **more}


def one_of(about: str, *values: str, **more: Any) -> Schema:
    """One of these texts."""
    return {
        "anyOf": [{"enum": [*values, None]}, {"$ref": "#/$defs/placeholder"}],
        "description": about,
        **more,
    }


def number(about: str, *, least: int | None = None, most: int | None = None, **more: Any) -> Schema:
    """A number; where a whole one is wanted, what is behind the point is dropped."""
    limits = {"minimum": least, "maximum": most}
    kind = {
        "type": ["number", "null"],
        **{word: limit for word, limit in limits.items() if limit is not None},
    }
    return {"anyOf": [kind, {"$ref": "#/$defs/placeholder"}], "description": about, **more}


def size(about: str, *, least: int = 0, **more: Any) -> Schema:
    """A number of bytes, or a text such as 64MiB."""
    bytes_, words = {"type": ["number", "null"], "minimum": least}, {"type": "string", "pattern": SIZE}
    if least:  # 0 is never too little: it means that there is no limit
        bytes_ = {"anyOf": [bytes_, {"const": 0}]}
    return {"anyOf": [bytes_, words, {"$ref": "#/$defs/placeholder"}], "description": about, **more}


def wait(about: str, *, least: int = 0, **more: Any) -> Schema:
    """A number of seconds, or a text such as 1m30s."""
    seconds: Schema = {"type": ["number", "null"], "minimum": least}
    if least:  # 0 is never too little: it switches something off
        seconds = {"anyOf": [seconds, {"const": 0}]}
    words = {"type": "string", "pattern": WAIT}
    return {"anyOf": [seconds, words, {"$ref": "#/$defs/placeholder"}], "description": about, **more}


def priority(about: str) -> Schema:
    """A whole number, or the name of a band."""
    ways = [{"type": ["integer", "null"]}, {"enum": [*ANCHORS]}, {"$ref": "#/$defs/placeholder"}]
    return {"anyOf": ways, "description": about}


def flag(about: str, *, default: bool | None = False) -> Schema:
    """True or false; None as its default stands for a value that is inherited."""
    return {"$ref": "#/$defs/flag", "description": about, **({} if default is None else {"default": default})}


def texts(about: str, *, items: Schema | None = None, **more: Any) -> Schema:
    """A list of texts."""
    return {
        "type": ["array", "null"],
        "items": {"$ref": "#/$defs/text"} if items is None else items,
        "description": about,
        **more,
    }


def section(about: str, keys: Mapping[str, Schema], *needed: str, null: bool = True) -> Schema:
    """A mapping with these keys and no others."""
    return {
        "type": ["object", "null"] if null else "object",
        "description": about,
        "properties": dict(keys),
        "additionalProperties": False,
        **({"required": list(needed)} if needed else {}),
    }


def named(about: str, value: Schema, **more: Any) -> Schema:
    """A mapping whose keys are names."""
    return {"type": ["object", "null"], "description": about, "additionalProperties": value, **more}


def anything(about: str) -> Schema:
    """A mapping of whatever the user likes."""
    return {"type": ["object", "null"], "description": about}
