"""No two cases that are played at once are given the same ports."""

from __future__ import annotations

from support.field_ports import END, FIRST, Ports, share_of


def everything(_: int) -> bool:
    """Whether a port is free: each is."""
    return True


def test_workers_never_share_a_port() -> None:
    given: list[set[int]] = []
    for worker in range(4):
        ports = Ports(worker, 4, everything)
        given.append({first + more for first in (ports.take(3) for _ in range(2000)) for more in range(3)})

    assert len(set.union(*given)) == sum(map(len, given))
    assert min(map(min, given)) >= FIRST
    assert max(map(max, given)) < END


def test_what_was_given_is_not_given_again_soon() -> None:
    ports = Ports(0, 1, everything)
    taken = [ports.take(2) for _ in range(1000)]

    assert len(set(taken)) == 1000


def test_a_row_with_a_taken_port_in_it_is_passed_over() -> None:
    ports = Ports(0, 1, lambda port: port % 10 != 5)

    for _ in range(100):
        first = ports.take(4)
        assert not any(port % 10 == 5 for port in range(first, first + 4))


def test_a_replacement_of_a_worker_has_its_share() -> None:
    ports = share_of({"PYTEST_XDIST_WORKER": "gw5", "PYTEST_XDIST_WORKER_COUNT": "3"})

    assert FIRST + 2 * (END - FIRST) // 3 <= ports.take(1) < END
