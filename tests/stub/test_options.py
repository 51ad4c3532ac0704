"""What the switches come to."""

from __future__ import annotations

import pytest

from llamaswap.stub.options import Manner, Options, options_of, wished
from llamaswap.stub.switches import make_parser


def options(words: str, start: int = 1) -> Options:
    return options_of(make_parser().parse_args(["--port", "1", *words.split()]), start)


def test_without_switches_it_answers_at_once_and_for_ever() -> None:
    given = options("")

    assert given.health.load == 0.0
    assert given.life.die_at is None
    assert given.manner == Manner()
    assert given.doors.only == ()


def test_each_start_takes_its_own_value_and_the_last_one_stays() -> None:
    assert [options("--load 25,1", start).health.load for start in (1, 2, 3)] == [25.0, 1.0, 1.0]


def test_a_dash_among_values_is_as_if_the_switch_were_not_given() -> None:
    assert [options("--die-at 2,- --code 7", start).life.die_at for start in (1, 2)] == [2.0, None]
    assert options("--die-at 2 --code 7").life.code == 7


def test_whole_numbers_stay_whole() -> None:
    manner = options("--tokens 3 --error-at 2").manner

    assert (manner.tokens, manner.error_at) == (3, 2)
    assert isinstance(manner.tokens, int)
    assert isinstance(manner.error_at, int)


def test_switches_reach_their_parts() -> None:
    given = options("--health-code 404 --health-lag 0.5 --only /a,/b --no-done --vram /lock 24G --usage {}")

    assert (given.health.code, given.health.lag) == (404, 0.5)
    assert given.doors.only == ("/a", "/b")
    assert given.life.vram == ("/lock", "24G")
    assert not given.manner.done
    assert given.manner.usage == {}


def test_a_request_changes_its_own_manner_only() -> None:
    usual = Manner(tokens=3)

    changed = wished(usual, {"gap": 0.5, "sizes": [1, 2], "headers": [["X-A", "b"]]})

    assert (changed.tokens, changed.gap, changed.sizes, changed.headers) == (3, 0.5, (1, 2), (("X-A", "b"),))
    assert usual == Manner(tokens=3)


def test_a_wish_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown tokenz"):
        wished(Manner(), {"tokenz": 3})
