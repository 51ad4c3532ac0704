"""The driver of these cases notices what it is there to notice."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.field import Field
from support.field_watch import Watch

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("how", [{"drop_at": 2}, {"reset_at": 2}, {"error_at": 2}, {"done": False}])
def test_a_stream_that_does_not_end_well_is_not_ok(how: dict[str, int], tmp_path: Path) -> None:
    with Field(tmp_path, {"A": ""}) as field:
        assert field.chat("A", stream=True).ok
        assert not field.chat("A", stream=True, stub=how).ok


def test_words_that_are_missing_or_odd_are_not_ok(tmp_path: Path) -> None:
    with Field(tmp_path, {"A": ""}) as field:
        assert not field.chat("A", stub={"tokens": 0}).ok
        assert not field.chat("A", stub={"fill": 10}).ok
        assert not field.chat("A", stub={"status": 404}).ok


def test_two_stubs_that_want_the_lock_fail_the_case(tmp_path: Path) -> None:
    side_by_side = {
        "groups": {"all": {"swap": False, "members": ["A", "B"]}},
        "routing": {"scheduler": {"use": "fifo"}},
    }

    def play() -> None:
        with Field(tmp_path, {"A": "", "B": ""}, config=side_by_side) as field:
            assert field.chat("A").ok
            assert not field.chat("B").ok

    with pytest.raises(AssertionError, match="two at once"):
        play()


def test_more_memory_than_at_the_base_line_fails_the_case(tmp_path: Path) -> None:
    with (
        pytest.raises(AssertionError, match="MiB more than at the base line"),
        Field(tmp_path, {"A": ""}, spare_memory=-1) as field,
    ):
        assert field.chat("A").ok


def test_a_daemon_that_ends_badly_fails_the_case(tmp_path: Path) -> None:
    with (
        pytest.raises(AssertionError, match="exit code -9"),
        Field(tmp_path, {"A": ""}) as field,
    ):
        field.stop(9)


def test_a_watch_that_saw_something_wrong_fails_the_case() -> None:
    answers = iter(["", "", "wrong"])

    with pytest.raises(AssertionError), Watch(lambda: next(answers, ""), period=0.001) as watch:
        Field.until(lambda: watch.looks > 3, "a few looks")


def test_a_watch_forgives_what_does_not_last() -> None:
    answers = iter(["wrong", "wrong", ""])

    with Watch(lambda: next(answers, ""), lasting=60.0, period=0.001) as watch:
        Field.until(lambda: watch.looks > 3, "a few looks")
