"""`keepAlive`: signs of life for clients that wait for their turn or for a load.

A key of our own, which llama-swap ignores.  Knows what it says, not what such a sign looks like.
"""

from __future__ import annotations

from llamaswap.config.durations import seconds_of
from llamaswap.config.mistakes import below
from llamaswap.config.model import KeepAliveConfig
from llamaswap.config.nodes import Mapping, describe
from llamaswap.config.reading import Section

KEY = "keepAlive"
SHORTEST = 1  # second


def read_keepalive(root: Section) -> KeepAliveConfig:
    """Read the key; a single time is that of event streams.  0 is none."""
    node = root.node(KEY)
    if node is not None and not isinstance(node, Mapping):
        return KeepAliveConfig(stream=_every(root, KEY))
    section = root.section(KEY)
    config = KeepAliveConfig(stream=_every(section, "stream"), json=_every(section, "json"))
    section.close()
    return config


def _every(section: Section, key: str) -> float:
    node = section.node(key)
    seconds = None if node is None else seconds_of(node, below(section.path, key), section.report)
    if node is None or not seconds:
        return 0.0
    if seconds < SHORTEST:
        section.wrong(key, f"expected at least {SHORTEST}s, or 0 for none, got {describe(node)}")
    return seconds
