"""Mappings as people write them, and what is wrong with some."""

from __future__ import annotations

from pathlib import Path

import pytest

from llamaswap.simulation.mapping import Cost, TraceMapping, mapping_of, read_mapping
from llamaswap.simulation.records import Unusable
from llamaswap.simulation.rules import Applied, Choice, Rule, everyone

WHOLE = """
model: {from: Model, values: {GPT-4: qwen, ChatGPT: gemma}, default: gemma}
priority:
  from: Log Type
  values:
    API*: batch
    Conversation*: {interactive: 0.3, 7: 0.7}
models:
  qwen: {load: 12, prefill: 900, decode: 40.5, parallel: 4}
  "*": {load: 8}
"""


def test_a_mapping_says_what_models_bands_and_tokens_are() -> None:
    read = mapping_of(WHOLE, "m.yaml")

    assert read.model == Rule(
        source="Model",
        values={"GPT-4": Choice(("qwen",)), "ChatGPT": Choice(("gemma",))},
        default=Choice(("gemma",)),
    )
    assert read.priority == Rule(
        source="Log Type", values={"API*": Choice((-100,)), "Conversation*": Choice((100, 7), (0.3, 0.7))}
    )
    assert read.costs == {"qwen": Cost(load=12, prefill=900, decode=40.5, parallel=4), "*": Cost(load=8)}


def test_a_mapping_may_be_about_everybody() -> None:
    read = mapping_of("{model: chat, priority: {interactive: 1, batch: 3}}", "m.yaml")

    assert read == TraceMapping(
        model=everyone(Choice(("chat",))), priority=everyone(Choice((100, -100), (1.0, 3.0)))
    )


def test_a_rule_without_a_column_looks_at_the_traces_own_word() -> None:
    read = mapping_of("model: {values: {a: b}}", "m.yaml")

    assert read.model is not None
    assert read.model.source is None
    assert Applied(read.model, "0").of("a") == "b"


def test_nothing_is_a_mapping_too() -> None:
    assert mapping_of("", "m.yaml") == TraceMapping()


def test_a_mapping_is_in_a_file_or_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(WHOLE)

    assert read_mapping(str(tmp_path / "m.yaml")) == mapping_of(WHOLE, "x")
    assert read_mapping("{model: chat}").model == everyone(Choice(("chat",)))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("modell: chat", "m.yaml:1:1: modell: unknown key; did you mean 'model'?"),
        ("model: [a]", "m.yaml:1:8: model: expected text, got a list"),
        ("model: ''", "m.yaml:1:8: model: expected a model, got nothing"),
        ("priority: high", "m.yaml:1:11: priority: priority: expected a whole number"),
        ("priority: {normal: 0}", "m.yaml:1:20: priority.normal: expected a share above 0, got 0"),
        ("priority: {urgent: 1}", "m.yaml:1:12: priority: priority: expected a whole number"),
        ("model: {from: x, values: {a: b}, els: c}", "m.yaml:1:34: model.els: unknown key"),
        ("model: {from: x, values: 3}", "m.yaml:1:26: model.values: expected a mapping, got 3"),
        ("models: {a: {load: 0}}", "m.yaml:1:20: models.a.load: expected seconds, a number above 0, got 0"),
        ("models: {a: {prefill: fast}}", "models.a.prefill: expected tokens a second, a number above 0, got"),
        ("models: {a: {load: true}}", "models.a.load: expected seconds, a number above 0, got true"),
        ("models: {a: {parallel: 0}}", "models.a.parallel: expected a whole number above 0, got 0"),
        ("models: {a: {lod: 1}}", "m.yaml:1:14: models.a.lod: unknown key; did you mean 'load'?"),
        ("[]", "m.yaml:1:1: expected a mapping, got a list"),
        ("{", "m.yaml:1:2: YAML:"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, complaint: str) -> None:
    with pytest.raises(Unusable) as refused:
        mapping_of(text, "m.yaml")

    assert complaint in str(refused.value)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(Unusable) as refused:
        mapping_of("priority: high\nmodels: {a: {load: x}}", "m.yaml")

    assert len(str(refused.value).splitlines()) == 2


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(Unusable, match="missing"):
        read_mapping(str(tmp_path / "missing.yaml"))
    (tmp_path / "bad").write_bytes(b"\xff")
    with pytest.raises(Unusable, match="bad"):
        read_mapping(str(tmp_path / "bad"))
