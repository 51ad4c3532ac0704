"""The readers that all sections use."""

from __future__ import annotations

from llamaswap.config.expanding import expand
from llamaswap.config.mistakes import Place, Report
from llamaswap.config.reading import Section, plain
from support.config_checks import lines
from support.config_nodes import tree


def section(text: str, report: Report | None = None, *, zeroed: bool = False) -> Section:
    return Section(expand(tree(text)), Place("f"), "top", report or Report(), zeroed=zeroed)


def test_missing_and_null_keys_have_their_default() -> None:
    have = section("{a: ~, b: 5}")
    assert (have.text("a", "x"), have.whole("c", 7), have.flag("d", default=True)) == ("x", 7, True)
    assert have.text("b", "x") == "5"


def test_a_zeroed_section_knows_no_defaults() -> None:
    have = section("~", zeroed=True)
    assert (have.text("a", "x"), have.whole("c", 7), have.flag("d", default=True)) == ("", 0, False)
    assert have.section("e").whole("f", 7) == 0


def test_null_elements_of_a_list_vanish() -> None:
    assert section("{l: [1, ~, x, '']}").texts("l") == ("1", "x", "")


def test_each_question_complains_at_its_own_place() -> None:
    report = Report()
    have = section("{a: [1], b: x, c: maybe, d: 1, e: 2, f: [[]]}", report)
    have.text("a")
    have.whole("b")
    have.flag("c")
    have.texts("d")
    have.section("e")
    have.texts("f")
    assert lines(report) == [
        "f:1:5: top.a: expected text, got a list",
        "f:1:13: top.b: expected a whole number, got 'x'",
        "f:1:19: top.c: expected true or false, got 'maybe'",
        "f:1:29: top.d: expected a list, got a single value",
        "f:1:35: top.e: expected a mapping, got 2",
        "f:1:42: top.f[0]: expected text, got a list",
    ]


def test_keys_that_nobody_asked_for_are_warned_about() -> None:
    report = Report()
    have = section("{tll: 1, ttl: 2, other: 3}", report)
    have.whole("ttl")
    have.close("other")
    assert report.warnings() == ("f:1:2: top.tll: unknown key; did you mean 'ttl'?",)


def test_numbers_must_fit_64_bits() -> None:
    report = Report()
    have = section("{a: 9223372036854775807, b: 9223372036854775808, c: 1e30, d: -0.9}", report)
    assert (have.whole("a"), have.whole("d")) == (2**63 - 1, 0)
    have.whole("b")
    have.whole("c")
    assert len(report.mistakes) == 2


def test_free_values_become_plain_ones_with_text_for_keys_and_dates() -> None:
    value = expand(tree("{1: a, ~: lost, d: 2024-01-02, l: [1.5, {true: ~}]}"))
    assert plain(value) == {"1": "a", "d": "2024-01-02T00:00:00Z", "l": [1.5, {"true": None}]}
