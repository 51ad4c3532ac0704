"""What a model's configuration comes to, as values and for programs."""

from __future__ import annotations

import json

import pytest

from llamaswap.config.load import load_text
from llamaswap.tools.explain import (
    NoSuchModel,
    eviction,
    eviction_facts,
    explain,
    explanation_facts,
    model_id,
)
from support.tools_configs import GROUPS, grouped, sets


def test_a_model_is_found_by_its_id_and_by_every_alias() -> None:
    assert [model_id(grouped(), name) for name in ("qwen", "q", "qwen:low")] == ["qwen"] * 3


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("qven", "'qven' is no model or alias in this configuration; did you mean 'qwen'?"),
        ("any", "'any' is a selector, not a model of this server"),
        ("office", "'office' is a peer, not a model of this server"),
    ],
)
def test_what_is_no_local_model_is_refused_with_the_reason(name: str, why: str) -> None:
    config = grouped("""
selectors: {any: {strategy: warm, targets: [qwen]}}
peers: {office: {proxy: "http://o", models: [big]}}
""")

    with pytest.raises(NoSuchModel) as refusal:
        model_id(config, name)

    assert str(refusal.value) == why


def test_the_port_is_the_one_in_the_url() -> None:
    assert explain(grouped(), "qwen").port == 5801
    assert explain(grouped(), "embed").port == 9100
    assert explain(load_text("models: {m: {cmd: s, proxy: 'http://h'}}"), "m").port is None
    assert explain(load_text("models: {m: {cmd: s, proxy: 'http://h:99999'}}"), "m").port is None


def test_the_limit_depends_on_the_scheduler() -> None:
    serial = "routing: {scheduler: {use: serial}}"

    assert [explain(grouped(), name).limit for name in ("qwen", "coder")] == [10, 3]
    assert [explain(grouped(serial), name).limit for name in ("qwen", "coder")] == [None, 3]


def test_a_priority_counts_under_fifo_only() -> None:
    fifo = "routing: {scheduler: {settings: {fifo: {priority: {qwen: 7}}}}}"
    serial = "routing: {scheduler: {use: serial, settings: {fifo: {priority: {qwen: 7}}}}}"

    assert explain(grouped(fifo), "qwen").priority == 7
    assert explain(grouped(serial), "qwen").priority == 0


def test_a_width_counts_under_serial_only() -> None:
    serial = "routing: {scheduler: {use: serial, settings: {serial: {width: {q: 4}}}}}"
    fifo = serial.replace("use: serial", "use: fifo")

    assert [explain(grouped(serial), name).width for name in ("qwen", "coder")] == [4, 1]
    assert explain(grouped(fifo), "qwen").width == 1


def test_a_default_priority_counts_under_both() -> None:
    batch = "priorities: {models: {q: batch}}\n"

    for use in ("fifo", "serial"):
        text = f"{batch}routing: {{scheduler: {{use: {use}}}}}"
        assert [explain(grouped(text), name).default_priority for name in ("qwen", "coder")] == [-100, 0]


def test_for_programs_what_llama_swap_does_not_know_is_there_when_it_is_in_use() -> None:
    text = (
        "priorities: {models: {q: batch}}\n"
        "routing: {scheduler: {use: serial, settings: {serial: {width: {q: 4}}}}}"
    )
    plain, set_ = (explanation_facts(explain(grouped(text), name)) for name in ("coder", "qwen"))

    assert set_.items() >= {"defaultPriority": -100, "width": 4}.items()
    assert set_.keys() - plain.keys() == {"defaultPriority", "width"}


def test_with_groups_it_tells_the_group_and_whom_it_evicts() -> None:
    explained = explain(grouped(), "q")

    assert explained.group is not None
    assert explained.group.id == "big"
    assert explained.sets is None
    assert explained.evicts == {"coder": True, "embed": False}


def test_with_a_matrix_it_tells_the_sets_and_whom_it_evicts() -> None:
    explained = explain(sets(), "a")

    assert explained.group is None
    assert explained.sets == ("pair", "all")
    assert explained.evicts == {"b": False, "c": False, "lone": True}
    assert explain(sets(), "lone").sets == ()


def test_an_eviction_question_takes_aliases_and_answers_with_ids() -> None:
    answer = eviction(grouped(), "coder", ["q", "embed", "qwen"])

    assert eviction_facts(answer) == {"target": "coder", "running": ["embed", "qwen"], "stop": ["qwen"]}


PROTECTED = GROUPS.replace("concurrencyLimit: 3", "protected: true")


def test_an_eviction_question_names_the_protected_models_that_it_is_about() -> None:
    config = load_text(PROTECTED)

    assert eviction_facts(eviction(config, "qwen", ["coder", "embed"]))["protected"] == ["coder"]
    assert "protected" not in eviction_facts(eviction(config, "coder", ["qwen"]))


def test_a_model_is_told_to_whom_it_yields() -> None:
    config = load_text(PROTECTED)

    assert [explain(config, name).yields_to for name in ("qwen", "coder", "embed")] == [("coder",), (), ()]
    assert explanation_facts(explain(config, "qwen"))["yieldsTo"] == ["coder"]
    assert explanation_facts(explain(config, "coder"))["settings"]["protected"] is True


def test_an_eviction_question_may_be_about_an_idle_box() -> None:
    assert eviction(sets(), "lone", []).stop == ()


def test_an_eviction_question_about_an_unknown_model_is_refused() -> None:
    with pytest.raises(NoSuchModel):
        eviction(sets(), "a", ["nobody"])


def test_for_programs_an_explanation_is_json() -> None:
    facts = json.loads(json.dumps(explanation_facts(explain(grouped(), "qwen"))))

    assert facts["model"] == "qwen"
    assert facts["settings"]["env"] == ["CUDA_VISIBLE_DEVICES=1"]
    assert (facts["port"], facts["limit"], facts["group"], facts["sets"]) == (5801, 10, "big", None)
    assert facts["evicts"] == ["coder"]


def test_for_programs_sets_are_a_list() -> None:
    facts = explanation_facts(explain(sets(), "c"))

    assert (facts["group"], facts["sets"], facts["evicts"]) == (None, ["all"], ["b", "lone"])
