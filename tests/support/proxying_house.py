"""A server that hands every request to one upstream, and what it notices of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from llamaswap.errors import Refusal
from llamaswap.http1.body import Body
from llamaswap.http1.client import UpstreamFailed
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.relay import Ended, Outcome
from support.http1_wires import Clients, Upstreams

Forward = Callable[[Exchange, Body], Awaitable[Outcome]]


class House:
    """A server whose requests all go one way.

    Args:
        forward: that way.
        upstreams: what it leads to.
    """

    def __init__(self, forward: Forward, upstreams: Upstreams) -> None:
        self.upstreams = upstreams
        self.outcomes: list[Outcome] = []
        self.refusals: list[Refusal] = []
        self.failures: list[str] = []
        self._forward = forward
        self.client = Clients(self._handle, upstreams).connect()

    @property
    def ended(self) -> list[Ended]:
        """How the relayed responses ended."""
        return [outcome.ended for outcome in self.outcomes]

    def ask(self, request: bytes) -> None:
        """Let the client send this."""
        self.client.send(request)

    async def _handle(self, exchange: Exchange) -> None:
        body = await exchange.body()
        try:
            self.outcomes.append(await self._forward(exchange, body))
        except Refusal as refusal:
            self.refusals.append(refusal)
            exchange.respond(refusal.status)
        except UpstreamFailed as failed:
            self.failures.append(failed.reason)
            exchange.respond(502)
