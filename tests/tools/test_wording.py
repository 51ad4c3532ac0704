"""An explanation for people."""

from __future__ import annotations

from llamaswap.config.load import load_text
from llamaswap.config.model import Config
from llamaswap.tools.explain import eviction, explain
from llamaswap.tools.wording import describe
from support.tools_configs import GROUPS, grouped, sets

QWEN = """\
qwen
  aliases         q, qwen:low
  command         llama-server
                  --port
                  5801
                  --alias
                  'my model'
  stop command    none: SIGTERM
  environment     CUDA_VISIBLE_DEVICES=1
  URL             http://localhost:5801
  port            5801
  ready when      /health answers 200, within 120 s
  group           big (one member at a time, unloads other groups): coder, qwen
  loading stops   coder
  but not         embed
  filters         1. model is sent as 'qwen-72b'
                  2. without seed, top_k
                  3. with temperature = 0.5
                  4. asked for as 'qwen:low': with temperature = 0.1
  limit           10 requests at a time, waiting ones included
  ttl             300 s without a request
  stopping        killed if it takes more than 10 s
  timeouts        connect 30 s, response header none, idle connection 90 s
"""


def lines(config: Config, name: str) -> dict[str, str]:
    """The text by its labels; only the first line of each."""
    described = describe(explain(config, name), None).splitlines()[1:]
    return {line[2:18].strip(): line[18:] for line in described if line[2:18].strip()}


def test_everything_about_a_model_has_its_line() -> None:
    assert describe(explain(grouped(), "qwen"), None) == QWEN


def test_a_question_about_running_models_comes_last() -> None:
    text = describe(explain(grouped(), "qwen"), eviction(grouped(), "qwen", ["coder", "embed"]))

    assert text.splitlines()[-1] == "  with coder, embed running  loading stops coder"


def test_a_question_about_an_idle_box_reads_well() -> None:
    text = describe(explain(grouped(), "qwen"), eviction(grouped(), "qwen", []))

    assert text.splitlines()[-1] == "  with nothing running  loading stops nothing"


def test_a_model_without_checks_or_limits_reads_well() -> None:
    shown = lines(grouped("routing: {scheduler: {use: serial}}"), "embed")

    assert shown["listed"] == "no, but it can be asked for"
    assert shown["ready when"] == "as soon as it runs"
    assert shown["environment"] == "as it is"
    assert shown["loading stops"] == "nothing"
    assert shown["ttl"] == "stays loaded"
    assert shown["limit"] == "any number of requests at a time, waiting ones included"
    assert shown["group"] == (
        "always (members stay together, leaves other groups alone, is not unloaded by them): embed"
    )


def test_protection_is_told_to_both_sides() -> None:
    config = load_text(GROUPS.replace("concurrencyLimit: 3", "protected: true"))
    asked = describe(explain(config, "qwen"), eviction(config, "qwen", ["coder", "embed"]))

    overrides = "the request says X-LlamaSwap-Evict: protected"
    assert lines(config, "qwen")["refused"] == f"while coder runs, unless {overrides}"
    assert lines(config, "coder")["protected"] == f"it makes way for another model only if {overrides}"
    assert asked.splitlines()[-1] == (
        f"  with coder, embed running  loading stops coder; coder only if {overrides}"
    )


def test_width_and_default_priority_are_told_where_they_are_set() -> None:
    text = (
        "priorities: {models: {q: batch}}\n"
        "routing: {scheduler: {use: serial, settings: {serial: {width: {q: 4}}}}}"
    )
    shown = lines(grouped(text), "qwen")

    assert shown["width"] == "4 requests run together"
    assert shown["default"] == "priority -100, if the request says none"
    assert not {"width", "default"} & lines(grouped(text), "coder").keys()


def test_the_matrix_has_sets_in_the_place_of_the_group() -> None:
    assert lines(sets(), "b")["sets"] == "pair, all"
    assert lines(sets(), "lone")["sets"] == "none: it runs alone"
    assert "group" not in lines(sets(), "b")


def test_a_model_that_can_not_be_started_says_so() -> None:
    shown = lines(load_text("models: {m: ~}"), "m")

    assert shown["command"] == "none: it can't be started"
    assert shown["URL"] == "none: it can't be used"


def test_what_a_terminal_might_act_on_is_spelt_out() -> None:
    settings = 'cmd: "s \\e[31m", proxy: "http://h", description: "one\\ntwo\\e[2J"'
    text = describe(explain(load_text(f"models: {{m: {{{settings}}}}}"), "m"), None)

    assert "\x1b" not in text
    assert "description     one\n                  two\\x1b[2J" in text
