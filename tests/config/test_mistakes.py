"""How complaints read and in which order they come."""

from __future__ import annotations

import pytest

from llamaswap.config.mistakes import ConfigRejected, Place, Report, below


def test_a_mistake_is_one_line_that_an_editor_can_jump_to() -> None:
    report = Report()
    report.wrong(Place("c.yaml", 14, 10), "models.qwen3.ttl", "expected seconds, got 'soon'")
    assert str(report.mistakes[0]) == "c.yaml:14:10: models.qwen3.ttl: expected seconds, got 'soon'"


def test_mistakes_come_in_the_order_of_the_files_not_of_the_alphabet() -> None:
    report = Report(["z.yaml", "a.yaml"])
    for place in (Place("a.yaml", 1, 1), Place("z.yaml", 2, 5), Place("z.yaml", 2, 1)):
        report.wrong(place, "", "no")
    with pytest.raises(ConfigRejected) as refusal:
        report.reject_if_wrong()
    assert [(one.file, one.column) for one in refusal.value.mistakes] == [
        ("z.yaml", 1),
        ("z.yaml", 5),
        ("a.yaml", 1),
    ]


def test_without_mistakes_nothing_is_rejected() -> None:
    Report().reject_if_wrong()


def test_a_settled_place_is_complained_about_once() -> None:
    report = Report()
    report.settle(Place("f"), "ttl", "unknown macro")
    report.wrong(Place("f"), "ttl", "expected seconds")
    assert [mistake.what for mistake in report.mistakes] == ["unknown macro"]


def test_a_complaint_stays_one_line_whatever_it_quotes() -> None:
    report = Report()
    report.warn(Place("f"), "a\nb", "odd \x1b[31m")
    assert report.warnings() == ("f:1:1: a\\nb: odd \\x1b[31m",)


def test_a_guess_ignores_case_and_needs_to_be_near() -> None:
    report = Report()
    assert report.guess("unloadtimout", ["unloadTimeout"]) == "; did you mean 'unloadTimeout'?"
    assert report.guess("zebra", ["unloadTimeout"]) == ""


def test_guessing_ends_before_it_takes_long() -> None:
    report = Report()
    guesses = [report.guess("cmdd", ["cmd"]) for _ in range(150)]
    assert guesses[0] and not guesses[-1]


@pytest.mark.parametrize(("path", "key", "want"), [("", "a", "a"), ("a", "b", "a.b"), ("a", 3, "a[3]")])
def test_a_path_grows_downwards(path: str, key: str | int, want: str) -> None:
    assert below(path, key) == want
