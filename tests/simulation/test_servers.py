"""The servers of a simulated box."""

from __future__ import annotations

from dataclasses import replace

from llamaswap.scheduling.vocabulary import Ticket
from llamaswap.simulation.scenario import box_of
from llamaswap.simulation.servers import Fleet, Server


def ticket(number: int) -> Ticket:
    return Ticket(number=number, model="A", priority=0, arrived=0.0)


def test_a_server_lets_those_wait_inside_whom_it_cannot_work_on_and_takes_them_in_turn() -> None:
    server = Server(most=2)

    assert [server.take(ticket(n)) for n in (1, 2, 3, 4)] == [True, True, False, False]
    assert server.done() == ticket(3)
    assert server.done() == ticket(4)
    assert server.done() is None
    assert [server.take(ticket(n)) for n in (5, 6)] == [True, False]


def test_whoever_leaves_a_servers_queue_is_never_worked_on() -> None:
    server = Server(most=1)
    for number in (1, 2, 3):
        server.take(ticket(number))

    server.drop(ticket(2))
    server.drop(ticket(9))

    assert server.done() == ticket(3)
    assert server.done() is None


def test_a_load_makes_a_model_running_and_its_end_makes_it_ready() -> None:
    fleet = Fleet(replace(box_of("AB"), resident=("A",)))
    assert fleet.running == fleet.ready == {"A"}

    fleet.stop({"A"})
    fleet.load("B", 7)
    assert (fleet.running, fleet.ready, fleet.loads) == (frozenset({"B"}), frozenset(), {"B": 7})

    fleet.loaded("B")
    assert (fleet.running, fleet.ready, fleet.loads) == (frozenset({"B"}), frozenset({"B"}), {})


def test_stopping_a_model_ends_its_load() -> None:
    fleet = Fleet(box_of("AB"))
    fleet.load("A", 1)

    fleet.stop({"A", "B"})

    assert (fleet.running, fleet.ready, fleet.loads) == (frozenset(), frozenset(), {})
