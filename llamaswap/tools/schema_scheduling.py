"""The schema of what decides who goes first: `routing.scheduler`, `priorities`, `keepAlive`."""

from __future__ import annotations

from llamaswap.config.keepalive import SHORTEST
from llamaswap.config.model import SchedulerName, SerialSettings
from llamaswap.config.priorities import ANCHORS, LARGEST_OFFSET, LONGEST_NAME
from llamaswap.config.scheduler import LARGEST_BONUS
from llamaswap.tools.schema_words import Schema, named, number, one_of, priority, section, text, texts, wait


def scheduler() -> Schema:
    """Return the schema of `routing.scheduler`."""
    fifo = {"priority": named("Model to priority; higher goes first.", number("Priority.", default=0))}
    settings = {
        "fifo": section("llama-swap's order.", fifo),
        "serial": section("One request at a time, the most urgent first.", _serial()),
    }
    names = [str(name) for name in SchedulerName]
    return section(
        "Who goes first.",
        {"use": one_of("The scheduler.", *names, "", default="fifo"), "settings": section("", settings)},
    )


def priorities() -> Schema:
    """Return the schema of `priorities`."""
    caller = section(
        "Whoever shows one of these keys.",
        {
            "name": text(
                "Shown where the caller is; never a key.", minLength=1, maxLength=LONGEST_NAME, pattern=r"\S"
            ),
            "keys": texts("Some of apiKeys; each belongs to one caller at most."),
            "defaultPriority": priority("Of a request without X-LlamaSwap-Priority."),
            "maxPriority": priority("What a request asks for beyond that counts as that."),
            "offset": number("Points added, never out of the band.", least=0, most=LARGEST_OFFSET, default=0),
        },
        "name",
        null=False,
    )
    return section(
        "What a priority is where the request does not say, and how far it may go.",
        {
            "callers": {"type": ["array", "null"], "items": caller, "description": "Who may ask for what."},
            "models": named(
                "Model to the priority of a request of which neither header nor caller says one.",
                priority("A number or a band."),
            ),
        },
    )


def keepalive() -> Schema:
    """Return the schema of `keepAlive`: the times of both kinds of answers, or that of streams."""
    every = {
        "stream": wait("Between two comments in an event stream; 0: none.", least=SHORTEST, default=0),
        "json": wait("Between two spaces before a JSON answer; 0: none.", least=SHORTEST, default=0),
    }
    both = section("Signs of life for clients that wait; a single time is that of streams.", every)
    ways = [{"type": "object"}, *wait("", least=SHORTEST)["anyOf"]]
    return {**both, "type": ["object", "string", "number", "null"], "anyOf": ways}


def _serial() -> dict[str, Schema]:
    defaults = SerialSettings()
    return {
        "agingDivisor": number(
            "Seconds of waiting that count as much as a point of priority; 0: waiting does not count.",
            least=0,
            default=defaults.aging_divisor,
        ),
        "swapAffinityBonus": number(
            "Points for a request whose model is loaded.",
            least=0,
            most=LARGEST_BONUS,
            default=defaults.swap_affinity_bonus,
        ),
        "swapBudgetSeconds": number(
            "Seconds of estimated work for the loaded model that may go before a swap; 0: none.",
            least=0,
            default=defaults.swap_budget,
        ),
        "width": named(
            "Model to how many of its requests may run together.",
            number("For a server that answers so many at once.", least=1, default=1),
        ),
        "maxWait": section(
            "How long a request may wait before it is refused; 0: for ever.",
            {band: wait("Of this band.", default=0) for band in ANCHORS},
        ),
        "maxQueue": section(
            "How many requests may wait before more are refused; 0: any number.",
            {band: number("Of this band.", least=0, default=0) for band in ANCHORS},
        ),
    }
