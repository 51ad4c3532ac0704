"""A log on demand."""

from __future__ import annotations

from llamaswap.stub.chatter import burst


def test_a_burst_has_each_of_its_lines_once() -> None:
    lines = burst(3, 6).decode().splitlines()

    assert len(lines) == 3
    assert [f"task {number} " in line for number, line in enumerate(lines, 3)] == [True] * 3
    assert burst(3, 3) == b""
