"""One caller's way to a lease, with a host that answers as a test says."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import CancelledError, Deferred

from llamaswap.claims import Claim, Waiter, Wish
from llamaswap.errors import QueueFull, Refusal
from llamaswap.leases import Abandoned, Lease
from llamaswap.scheduling.vocabulary import Ticket
from support.processes_fakes import Outcome

TICKET = Ticket(number=7, model="a", priority=0, arrived=0.0)


class Server:
    """Counts its uses."""

    uses = 0

    def begin_use(self) -> None:
        """One more."""
        self.uses += 1

    def end_use(self) -> None:
        """One less."""
        self.uses -= 1


class House:
    """A host whose waiter gets `answer` at once, or waits for it where that is None."""

    def __init__(self, answer: Lease | Refusal | None = None, past: Lease | None = None) -> None:
        self.waiter = Waiter(TICKET, Wish(model="a", priority=0))
        self.waiter.answer = answer
        self.entered = 0
        self.returned: list[tuple[int, bool]] = []
        self._past = past

    def pass_by(self, model: str) -> Lease | None:
        """What the test said."""
        return self._past

    def enter(self, wish: Wish) -> Waiter:
        """The one waiter."""
        self.entered += 1
        return self.waiter

    def abandon(self, waiter: Waiter) -> Abandoned:
        """It left."""
        return Abandoned(waiter.ticket, None, 1.0, {})

    def give_back(self, ticket: Ticket, *, whole: bool) -> None:
        """Noted."""
        self.returned.append((ticket.number, whole))


def a_lease() -> Lease:
    """A lease of a server that only counts."""
    server: Any = Server()
    return Lease(server=server, verdict=None, load=0.0)


def hold(house: House, work: Deferred[None] | None = None, *, looks_only: bool = False) -> Deferred[None]:
    """Claim a lease and hold it until `work` is over."""

    async def hold_it() -> None:
        async with Claim(house, Wish(model="a", priority=0, looks_only=looks_only)):
            if work is not None:
                await work

    return Deferred.fromCoroutine(hold_it())


def test_a_lease_that_is_there_is_used_and_given_back_whole() -> None:
    lease, work = a_lease(), Deferred[None]()
    house = House(lease)

    ended = hold(house, work)
    assert lease.server.uses == 1  # type: ignore[attr-defined]  # the test's own server
    work.callback(None)

    assert ended.called
    assert lease.server.uses == 0  # type: ignore[attr-defined]  # the test's own server
    assert house.returned == [(7, True)]


def test_a_block_that_is_broken_off_gives_back_what_is_not_whole() -> None:
    house, work = House(a_lease()), Deferred[None]()

    ended = Outcome(hold(house, work))
    ended.deferred.cancel()

    assert isinstance(ended.failure, CancelledError)
    assert house.returned == [(7, False)]


def test_a_refusal_is_raised_to_who_waits() -> None:
    house = House()
    ended = Outcome(hold(house))

    house.waiter.end(QueueFull())

    assert isinstance(ended.failure, QueueFull)
    assert house.returned == []


def test_who_is_cancelled_while_he_waits_is_abandoned() -> None:
    ended = Outcome(hold(House()))

    ended.deferred.cancel()

    assert isinstance(ended.failure, Abandoned)


def test_who_only_looks_and_may_pass_takes_no_ticket() -> None:
    house = House(past=a_lease())

    ended = hold(house, looks_only=True)

    assert ended.called
    assert house.entered == 0
    assert house.returned == []
