"""Declaring and replacing macros."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.config.expanding import expand
from llamaswap.config.macros import Macro, Substitution, TooMuchText, declarations, leftovers
from llamaswap.config.mistakes import Report
from llamaswap.config.nodes import Plain
from support.config_checks import lines, loaded, model_of, rejected
from support.config_nodes import at, bare, mapping, tree


def replaced(text: str, *macros: Macro) -> Plain:
    return Substitution(macros).value(text, at(0, 0))


def test_a_whole_value_takes_the_type_of_its_macro() -> None:
    assert replaced("${C}", Macro("C", 4096)) == 4096
    assert replaced("n=${C}", Macro("C", 4096)) == "n=4096"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.70, "0.7"), (1e6, "1e+06"), (True, "true"), (float("inf"), "+Inf"), (float("-inf"), "-Inf")],
)
def test_inside_a_text_a_value_is_spelt_out(value: Plain, text: str) -> None:
    assert replaced("<${V}>", Macro("V", value)) == f"<{text}>"


def test_a_macro_may_use_those_before_it_only() -> None:
    before, after = Macro("r", "/m"), Macro("f", "${r}/x")
    assert replaced("run ${f}", before, after) == "run /m/x"
    assert replaced("run ${f}", after, before) == "run ${r}/x"


def test_a_value_may_be_put_together_from_the_result_of_another() -> None:
    assert replaced("${${A}}", Macro("X", "v"), Macro("A", "X")) == "v"


@pytest.mark.parametrize("text", ["$A", "${ A }", "${a.b}", "${}", "${A B}"])
def test_anything_else_with_a_dollar_is_text(text: str) -> None:
    assert replaced(text, Macro("A", "x")) == text


def test_keys_and_opaque_mappings_are_left_alone() -> None:
    node = expand(tree("{'${A}': '${A}', in: {7: '${A}'}, list: ['${A}']}"))
    have = bare(Substitution((Macro("A", "x"),)).tree(node))
    assert have == {"${A}": "x", "in": {7: "${A}"}, "list": ["x"]}


def test_macros_that_multiply_end_at_a_limit() -> None:
    bomb = [Macro("a0", "x" * 10), *(Macro(f"a{n}", f"${{a{n - 1}}}" * 10) for n in range(1, 12))]
    with pytest.raises(TooMuchText):
        replaced("${a11}!", *bomb)


@given(st.lists(st.text("a${}b", max_size=12), max_size=6), st.text("a${}b01", max_size=20))
def test_replacing_always_ends_with_a_text(values: list[str], text: str) -> None:
    macros = [Macro("ab"[n % 2] * (n // 2 + 1), value) for n, value in enumerate(values)]
    assert isinstance(replaced(text, *macros), str)


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        ("{PORT: 1}", "f:1:2: macros.PORT: this name is reserved"),
        ("{a.b: 1}", "f:1:2: macros.a.b: expected a name"),
        ("{k: ~}", "f:1:2: macros.k: expected text, a number or a bool, got nothing"),
        ("{k: [1]}", "f:1:2: macros.k: expected text"),
        ("{k: 2024-01-02}", "f:1:2: macros.k: expected text"),
        ("{k: 'x${k}'}", "f:1:2: macros.k: refers to itself"),
        ("[a]", "f:1:1: macros: expected a mapping, got a list"),
        ("{<<: {a: 1}}", "f:1:2: macros: merge keys"),
    ],
)
def test_a_bad_declaration_is_reported(block: str, complaint: str) -> None:
    report = Report()
    declarations(expand(tree(block)), "macros", report)
    assert len(report.mistakes) == 1
    assert lines(report)[0].startswith(complaint)


def test_a_name_is_the_raw_text_of_its_key() -> None:
    assert [one.name for one in declarations(mapping("{0x10: a, true: b}"), "macros", Report())] == [
        "0x10",
        "true",
    ]


def test_a_block_whose_lines_are_all_comments_declares_nothing() -> None:
    text = """
        macros:
          # base: serve --verbose
        models:
          m:
            macros:
              # size: 4096
            cmd: serve ${PORT}
          n:
            macros: ~
            cmd: serve ${PORT}
    """
    config = loaded(text)
    assert [model.cmd for model in config.models.values()] == ["serve 5800", "serve 5801"]
    assert config.warnings == ()


def test_what_is_left_over_is_reported_once_however_the_setting_reads_it() -> None:
    assert rejected("globalTTL: '${nope}'") == [
        "1:12: globalTTL: unknown macro ${nope}; a macro can only use those declared before it"
    ]


def test_unknown_top_level_keys_may_keep_placeholders() -> None:
    loaded("x-notes: '${nope}'")
    report = Report()
    leftovers(tree("{a: ['${PID}', '${X}']}"), "", report, allowed={"PID"})
    assert lines(report) == [
        "f:1:16: a[1]: unknown macro ${X}; a macro can only use those declared before it"
    ]


def test_macros_reach_every_section() -> None:
    assert model_of("ttl: '${T}'", "macros: {T: 60.9}").ttl == 60
