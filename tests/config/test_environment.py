"""`${env.NAME}`: what is replaced, what must exist, and where things stand afterwards."""

from __future__ import annotations

from llamaswap.config.environment import substitute
from llamaswap.config.mistakes import Report
from support.config_checks import lines, loaded, rejected


def substituted(text: str, **environ: str) -> str:
    report = Report()
    result = substitute("f", text, environ, report)
    assert not report.mistakes
    return result.text


def test_a_reference_becomes_the_value_with_quotes_and_backslashes_escaped() -> None:
    assert substituted('k: "${env.A}"', A='x"y\\z') == 'k: "x\\"y\\\\z"'


def test_an_unquoted_number_is_a_number() -> None:
    assert loaded("globalTTL: ${env.T}", T="60").global_ttl == 60


def test_a_value_may_refer_to_one_more_level() -> None:
    assert substituted("k: ${env.A}", A="${env.B}", B="deep") == "k: deep"
    assert rejected("logLevel: ${env.A}", A="${env.B}", B="${env.C}", C="x") == [
        "1:11: logLevel: ${env.C} is nested too deep in the environment, or not set"
    ]


def test_an_unset_variable_is_a_mistake_where_it_is_used() -> None:
    assert rejected("a: 1\nb: x ${env.NOPE}") == ["2:6: environment variable NOPE is not set"]


def test_a_comment_may_name_what_does_not_exist() -> None:
    assert substituted("a: 1 # ${env.NOPE}") == "a: 1 # ${env.NOPE}"


def test_where_the_text_is_no_yaml_yet_even_comments_must_be_resolvable() -> None:
    assert rejected("# ${env.NOPE}\napiKeys: [${env.K}]", K="k") == [
        "1:3: environment variable NOPE is not set"
    ]


def test_a_line_break_in_a_value_is_a_mistake() -> None:
    assert rejected("a: ${env.A}", A="x\ny") == ["1:4: environment variable A holds a line break or NUL"]


def test_malformed_references_are_text() -> None:
    assert substituted("k: ${env.} ${env.a-b} $env.A", A="x") == "k: ${env.} ${env.a-b} $env.A"


def test_columns_are_those_of_the_file_on_disk() -> None:
    text = "models: {${env.LONG}: {cmd: s, proxy: 'http://h', ttl: soon}}"
    assert rejected(text, LONG="x" * 50)[0].startswith(f"1:{text.index('soon') + 1}: models.xxx")
    assert rejected(text, LONG="y")[0].startswith(f"1:{text.index('soon') + 1}: models.y.ttl")


def test_values_that_multiply_end_at_a_limit() -> None:
    report = Report()
    substitute("f", "${env.A}" * 1000, {"A": "${env.A}" * 1000}, report)
    assert lines(report) == ["f:1:1: the environment's values are too long"]
