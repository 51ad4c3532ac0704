"""`limits`: what everybody together may cost the daemon.

A section of our own, which llama-swap ignores.  Knows what it says, not how a
limit is kept.
"""

from __future__ import annotations

from llamaswap.config.model import LimitsConfig
from llamaswap.config.reading import Section
from llamaswap.config.sizes import read_size

LEAST_SLOW_CLIENT = 64 * 1024
"""Bytes; with less an upstream would be held back at every piece, whoever reads."""


def read_limits(section: Section) -> LimitsConfig:
    """Read the section; without it, the defaults.  0 is no limit, whatever is limited."""
    usual = LimitsConfig()
    body, held = read_size(section, "requestBody"), read_size(section, "heldBodies")
    slow = read_size(section, "slowClient")
    limits = LimitsConfig(
        connections=_count(section, "connections", usual.connections),
        waiting=_count(section, "waiting", usual.waiting),
        request_body=usual.request_body if body is None else body,
        held_bodies=held,
        slow_client=usual.slow_client if slow is None else slow,
        readers=_count(section, "readers", usual.readers),
    )
    section.close()
    if 0 < limits.slow_client < LEAST_SLOW_CLIENT:
        section.wrong("slowClient", f"expected at least 64KiB, or 0 for no limit, got {limits.slow_client}")
    if body is not None and held and (body > held or not body):
        section.warn("requestBody", "larger than heldBodies, so that one counts for each body, too")
    return limits


def _count(section: Section, key: str, default: int) -> int:
    number = section.whole(key, default)
    if number < 0:
        section.wrong(key, f"expected a number from 0, got {number}")
    return number
