"""Lines of Mooncake's traces."""

from __future__ import annotations

import pytest

from llamaswap.simulation.mooncake import record_of
from llamaswap.simulation.records import BadLine
from support.traces import MOONCAKE


def test_a_line_becomes_seconds_and_two_counts() -> None:
    record = record_of(MOONCAKE.splitlines()[1].encode())

    assert (record.at, record.prompt, record.generated) == (3.052, 2290, 316)


def test_a_moment_may_have_a_fraction() -> None:
    assert record_of(b'{"timestamp": 1.5, "input_length": 1, "output_length": 1}').at == 0.0015


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"[]",
        b'{"timestamp": 1, "input_length": 1}',
        b'{"timestamp": -1, "input_length": 1, "output_length": 1}',
        b'{"timestamp": 1e300, "input_length": 1, "output_length": 1}',
        b'{"timestamp": 1, "input_length": "x", "output_length": 1}',
    ],
)
def test_a_line_that_makes_no_sense_is_refused(line: bytes) -> None:
    with pytest.raises(BadLine):
        record_of(line)
