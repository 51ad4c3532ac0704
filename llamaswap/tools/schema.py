"""The JSON Schema of a whole configuration file, for editors.

It accepts what the loader accepts, apart from keys that are only warned about.  What it
can't see, the loader still finds: whether names mean something, and whether they clash.
`etc/config-schema.json` is this text.
"""

from __future__ import annotations

import json

from llamaswap.config.limits import LEAST_SLOW_CLIENT
from llamaswap.config.model import Config, LimitsConfig
from llamaswap.config.routing import ROUTERS
from llamaswap.tools import schema_entries, schema_scheduling
from llamaswap.tools.schema_words import (
    DEFINITIONS,
    Schema,
    flag,
    named,
    number,
    one_of,
    section,
    size,
    text,
    texts,
)

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_DURATION = r"^[-+]?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
_FILLED = {"type": "object", "minProperties": 1}


def schema_text() -> str:
    """Return the schema as JSON, indented, with a line end."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def schema() -> Schema:
    """Return the schema of a file whose root is a mapping."""
    return {
        "$schema": DRAFT,
        "title": "llamaswap configuration",
        "type": "object",
        "properties": {**_sections(), **_settings(Config()), **_small_sections(Config())},
        "patternProperties": {"^x-": True},
        # A mapping or list under a name of its own can hold anchors; a single value can't be meant.
        "additionalProperties": {"type": ["object", "array"]},
        "not": {"required": ["groups", "matrix"], "properties": {"groups": _FILLED, "matrix": _FILLED}},
        "$defs": dict(DEFINITIONS),
    }


def _sections() -> dict[str, Schema]:
    return {
        "macros": schema_entries.macros("Names for values; ${NAME} stands for one."),
        "models": schema_entries.models(),
        "routing": _routing(),
        "groups": _groups(),
        "matrix": _matrix(),
        "selectors": schema_entries.selectors(),
        "profiles": schema_entries.profiles(),
        "peers": schema_entries.peers(),
        "priorities": schema_scheduling.priorities(),
    }


def _settings(defaults: Config) -> dict[str, Schema]:
    return {
        "apiKeys": texts("Keys that clients must show; none: anyone may use the server."),
        "healthCheckTimeout": number(
            "Seconds that a model may take to load, from 15.", default=defaults.health_check_timeout
        ),
        "unloadTimeout": number(
            "Seconds that a model may take to stop.", least=0, default=defaults.unload_timeout
        ),
        "globalTTL": number(
            "Idle seconds until a model is unloaded; 0: never.", least=0, default=defaults.global_ttl
        ),
        "startPort": number("The first ${PORT}.", least=1, default=defaults.start_port),
        "sendLoadingState": flag("Tell clients that stream a chat how loading goes."),
        "includeAliasesInList": flag("Whether /v1/models lists aliases, too."),
        "logLevel": text("debug, info, warn or error.", default=defaults.log_level),
        "logTimeFormat": text(
            "A time before each line: rfc3339, kitchen, stamp, ansic ...", default=defaults.log_time_format
        ),
        "logToStdout": one_of(
            "Whose lines are printed.", "proxy", "upstream", "both", "none", default=defaults.log_to_stdout
        ),
        "logRequests": {**flag("Has no effect."), "deprecated": True},
        "metricsMaxInMemory": number(
            "How many requests are kept in memory.", default=defaults.metrics_max_in_memory
        ),
        "captureBuffer": number(
            "MiB of bodies kept for looking at; 0: none.", default=defaults.capture_buffer
        ),
    }


def _small_sections(defaults: Config) -> dict[str, Schema]:
    hooks = section("Models to load.", {"preload": texts("One after the other.")})
    activity = section(
        "Of the activity page.",
        {
            "session_id": texts(
                "Headers that tell which conversation a request belongs to.",
                default=list(defaults.session_headers),
            )
        },
    )
    every = {
        "type": ["string", "null"],
        "anyOf": [{"pattern": _DURATION}, {"$ref": "#/$defs/placeholder"}],
        "description": "At least 5s.",
        "default": "5s",
    }
    paths = texts(
        "Regular expressions (RE2): paths below /upstream/<model>/ that don't start the model.",
        default=list(defaults.ignore_paths),
    )
    path = {"$ref": "#/$defs/text", "pattern": r"\S", "description": "A file."}
    samples = {"disabled": flag("No samples."), "every": every}
    return {
        "hooks": section("What happens by itself.", {"on_startup": hooks}),
        "limits": _limits(defaults.limits),
        "keepAlive": schema_scheduling.keepalive(),
        "store": section("Where activity is kept; without this, in memory.", {"path": path}, "path"),
        "performance": section("Samples of the machine's load.", samples),
        "ui": section("The web pages.", {"activity": activity}),
        "upstream": section("/upstream/<model>/.", {"ignorePaths": paths}),
    }


def _limits(defaults: LimitsConfig) -> Schema:
    counts = {
        "connections": (
            "Of clients, open at once; 0: as many as the descriptors allow.",
            defaults.connections,
        ),
        "waiting": ("Requests that wait; 0: any number.", defaults.waiting),
        "readers": ("Streams of events and logs; 0: any number.", defaults.readers),
    }
    held = "Bytes of all request bodies together; null: a share of the memory, 0: no limit."
    return section(
        "What everybody together may cost the daemon.",
        {
            **{key: number(about, least=0, default=default) for key, (about, default) in counts.items()},
            "requestBody": size("Bytes of one request body; 0: no limit.", default=defaults.request_body),
            "heldBodies": size(held, default=defaults.held_bodies),
            "slowClient": size(
                "Bytes of an answer that wait for a client that reads slowly; 0: no limit.",
                least=LEAST_SLOW_CLIENT,
                default=defaults.slow_client,
            ),
        },
    )


def _routing() -> Schema:
    settings = section("Of each router.", {"groups": _groups(), "matrix": _matrix()})
    router = section(
        "Which models may be loaded at the same time.",
        {"use": one_of("The router.", *ROUTERS, "", default="group"), "settings": settings},
    )
    router["if"] = {"required": ["use"], "properties": {"use": {"const": "matrix"}}}
    router["then"] = {
        "required": ["settings"],
        "properties": {"settings": {"required": ["matrix"], "properties": {"matrix": _FILLED}}},
    }
    return section(
        "Who shares the machine, and who goes first.",
        {"router": router, "scheduler": schema_scheduling.scheduler()},
    )


def _groups() -> Schema:
    group = section(
        "Models that share something.",
        {
            "swap": flag("One member at a time.", default=True),
            "exclusive": flag("Loading a member unloads other groups.", default=True),
            "persistent": flag("Other groups don't unload this one."),
            "members": texts("Model ids; a model is in one group at most."),
        },
    )
    return named("Groups of models.", group)


def _matrix() -> Schema:
    costs = number("From 1.", least=1, default=1)
    variables = named(
        "Short names for model ids.",
        {"$ref": "#/$defs/text"},
        propertyNames={"pattern": "^[a-zA-Z0-9.-]{1,32}$"},
    )
    sets = named("& means together, | one of these, +name another set.", text("Models."), minProperties=1)
    return section(
        "Which models may be loaded together.",
        {
            "vars": variables,
            "evict_costs": named("What it costs to unload a model; the cheapest way wins.", costs),
            "sets": sets,
        },
    )
