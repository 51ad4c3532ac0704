"""What a request may ask of the queue, read off its head once for all requests that are alike."""

from __future__ import annotations

import msgspec

from llamaswap.calls import evict, maxwait, priority
from llamaswap.calls.callers import Policy
from llamaswap.config.model import CallerConfig, PrioritiesConfig
from llamaswap.http1.heads import RequestHead
from llamaswap.web.keys import Keyring


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What one head says, and who sent it."""

    priority: int | None  # that it waits with; None: the model has a say in it
    asked: int | None  # by its header; None without one
    caller: CallerConfig | None  # whose key it carries
    name: str  # the caller's, '' for nobody in particular
    max_wait: float | None  # seconds that it wants to wait at most
    overrides: bool  # it may unload protected models
    odd_priority: bool  # its header made no sense, and counts as 0
    odd_max_wait: bytes  # what made no sense of the other one, b'' if nothing


class Standings:
    """Knows what each request may ask for.

    Args:
        keyring: tells whose key a request carries.
    """

    def __init__(self, keyring: Keyring, priorities: PrioritiesConfig) -> None:
        self._keyring = keyring
        self._policy = Policy(priorities)

    def of(self, head: RequestHead) -> Standing:
        """Return what a head says; worked out once for those that differ in Content-Length only."""
        # A head may be remembered for longer than a configuration lasts, so we are the key ourselves.
        found: Standing | None = head.kin.memories.get(self)
        return head.derived(self, self._read) if found is None else found

    def priority(self, standing: Standing, model: str) -> int:
        """Return what a request for this model waits with; `standing.priority` where that says it already."""
        return self._policy.effective(standing.asked, standing.caller, model)

    def _read(self, head: RequestHead) -> Standing:
        value = head.get(priority.HEADER)
        read = priority.parse_priority(value)
        asked = None if value is None else read.value
        caller = self._keyring.caller_of(head)
        says_nothing = asked is None and (caller is None or caller.default_priority is None)
        limit = head.get(maxwait.HEADER)
        max_wait = maxwait.parse_max_wait(limit)
        return Standing(
            priority=None
            if says_nothing and self._policy.depends_on_model
            else self._policy.effective(asked, caller, ""),
            asked=asked,
            caller=caller,
            name="" if caller is None else caller.name,
            max_wait=max_wait,
            overrides=evict.overrides(head.get(evict.HEADER)),
            odd_priority=not read.parseable,
            odd_max_wait=limit or b"" if max_wait is None else b"",
        )
