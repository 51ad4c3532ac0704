"""The schema of `models` and of what else offers names: `peers`, `selectors`, `profiles`."""

from __future__ import annotations

from llamaswap.config.model import ModelConfig, Timeouts
from llamaswap.config.models import INHERIT_TTL
from llamaswap.config.selectors import STRATEGIES
from llamaswap.tools.schema_words import Schema, anything, flag, named, number, section, text, texts


def models() -> Schema:
    """Return the schema of `models`."""
    return named("The name that clients ask for, and how that model is served.", _model())


def macros(about: str) -> Schema:
    """Return the schema of a `macros` block."""
    return {
        "type": ["object", "null"],
        "description": about,
        "propertyNames": {"pattern": "^[a-zA-Z0-9_-]{1,63}$", "not": {"enum": ["PORT", "PID", "MODEL_ID"]}},
        "additionalProperties": {"type": ["string", "number", "boolean"]},
    }


def peers() -> Schema:
    """Return the schema of `peers`."""
    peer = section(
        "Another server that offers models; each is <peer>/<model>, or <model> where that is clear.",
        {
            "proxy": text("Its URL."),
            "models": texts("What it offers.", minItems=1),
            "apiKey": text("Sent instead of the client's own.", default=""),
            "filters": _filters({}),
            "timeouts": _timeouts(Timeouts(response_header=60)),
        },
        "proxy",
        "models",
    )
    return named("Other servers and the models they offer.", peer)


def selectors() -> Schema:
    """Return the schema of `selectors`."""
    settings = section(
        "Settings of single strategies.",
        {"spillover": number("From so many requests on, a target is busy.", default=1)},
    )
    selector = section(
        "A name that stands for one of several models.",
        {
            "strategy": {
                "enum": [*STRATEGIES],
                "description": "pin: the first; warm: the first that is loaded; spillover: until it is busy.",
            },
            "targets": texts("What it chooses from.", minItems=1),
            "settings": settings,
            "name": text("Shown in /v1/models.", default=""),
            "description": text("Shown in /v1/models.", default=""),
            "unlisted": flag("Usable, but not in /v1/models."),
            "metadata": anything("Shown in /v1/models."),
        },
        "strategy",
        "targets",
        null=False,
    )
    return named("Names that choose between several models.", selector)


def profiles() -> Schema:
    """Return the schema of `profiles`."""
    profile = section(
        "Pins that count while the profile is active.",
        {
            "description": text("What it is for.", default=""),
            "pins": named(
                "The name asked for, and what serves it; null switches the name off.",
                {"$ref": "#/$defs/text"},
                minProperties=1,
            ),
        },
        "pins",
        null=False,
    )
    return named("Sets of pins.", profile)


def _model() -> Schema:
    defaults = ModelConfig(id="")
    return section(
        "One model and its server.",
        {
            "cmd": text("What starts the server; words as in a shell, but no shell runs."),
            "cmdStop": text("What stops it; without this, SIGTERM.", default=""),
            "proxy": text("Where it listens.", default="http://localhost:${PORT}"),
            "checkEndpoint": text(
                "Answers 200 once the model can be used; none: as soon as it runs.",
                default=defaults.check_endpoint,
            ),
            "aliases": texts("Further names."),
            "env": texts("NAME=value, added to the environment of the command."),
            "ttl": number(
                "Idle seconds until it is unloaded; 0: never, -1: what globalTTL says.",
                least=INHERIT_TTL,
                default=INHERIT_TTL,
            ),
            "unloadTimeout": number(
                "Seconds that it may take to stop; 0: the global value.", least=0, default=0
            ),
            "name": text("Shown in /v1/models.", default=""),
            "description": text("Shown in /v1/models.", default=""),
            "metadata": anything("Shown in /v1/models."),
            "unlisted": flag("Usable, but not in /v1/models."),
            "useModelName": text("The model name that the server is sent.", default=""),
            "concurrencyLimit": number(
                "Requests at a time, waiting ones included; 0: 10 under fifo, no limit under serial.",
                default=0,
            ),
            "protected": flag("While it runs, requests that would have to unload it are refused."),
            "sendLoadingState": flag("Tell clients that stream a chat how loading goes.", default=None),
            "healthCheckTimeout": number("Has no effect here; the global value counts.", deprecated=True),
            "filters": _filters({"strip_params": text("The old spelling of stripParams.", deprecated=True)}),
            "timeouts": _timeouts(defaults.timeouts),
            "compat": _compat(),
            "capabilities": _capabilities(),
            "macros": macros("Macros of this model only."),
        },
    )


def _filters(legacy: dict[str, Schema]) -> Schema:
    return section(
        "Changes to the body of a JSON request; model is never touched.",
        {
            "stripParams": text("Removed, separated by commas.", default=""),
            "setParams": anything("Set, whatever the client said."),
            "setParamsByID": named(
                "Set when the model is asked for under this name, which makes the name an alias.",
                {"type": ["object", "null"]},
            ),
            **legacy,
        },
    )


def _timeouts(defaults: Timeouts) -> Schema:
    about = {
        "connect": ("To connect.", defaults.connect),
        "keepalive": ("Between TCP keep-alive probes.", defaults.keepalive),
        "responseHeader": ("Until an answer begins.", defaults.response_header),
        "tlsHandshake": ("For TLS.", defaults.tls_handshake),
        "expectContinue": ("For 100 Continue.", defaults.expect_continue),
        "idleConn": ("That an idle connection is kept.", defaults.idle_conn),
    }
    keys = {key: number(f"Seconds. {what}", default=default) for key, (what, default) in about.items()}
    return section("Limits on the connection to the server; 0: none.", keys)


def _compat() -> Schema:
    return section(
        "For clients and servers with habits of their own.",
        {
            "ignoreWebsockets": flag("Websockets don't start the model, and don't keep it loaded."),
            "drainOnDisconnect": flag("Read the server's answer to its end when the client goes away."),
        },
    )


def _capabilities() -> Schema:
    kinds = {"enum": ["text", "audio", "image", None]}
    return section(
        "What the model can do, for /v1/models.",
        {
            "in": texts("What it takes.", items=kinds),
            "out": texts("What it gives.", items=kinds),
            "tools": flag("Whether it can call functions."),
            "reranker": flag("Whether it ranks documents."),
            "context": number("Tokens.", least=0, default=0),
        },
    )
