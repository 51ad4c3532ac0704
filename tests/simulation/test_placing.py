"""Records as arrivals at this box."""

from __future__ import annotations

import pytest

from llamaswap.simulation.mapping import TraceMapping, mapping_of
from llamaswap.simulation.placing import Costs, Placing
from llamaswap.simulation.records import BadLine, Record
from llamaswap.simulation.stored import Measured

MEASURED = Measured(load={"chat": 9.0}, run={}, prefill={"chat": 100.0}, decode={"chat": 10.0})


def placing(text: str = "", label: str = "conv", seed: int = 0, measured: Measured = MEASURED) -> Placing:
    mapping = mapping_of(text, "m.yaml") if text else TraceMapping()
    return Placing(mapping, Costs(mapping.costs, measured), {"c": "chat"}, label, seed)


def test_a_record_that_says_everything_is_taken_as_it_is() -> None:
    arrival = placing().arrival(Record(at=5.0, model="c", priority=-3, run=2.5, user="ada", cancel_after=9.0))

    assert (arrival.at, arrival.model, arrival.priority, arrival.run) == (5.0, "chat", -3, 2.5)
    assert (arrival.user, arrival.cancel_after) == ("ada", 9.0)


def test_tokens_take_as_long_as_they_did_here() -> None:
    arrival = placing().arrival(Record(at=0, model="chat", prompt=500, generated=20))

    assert (arrival.run, arrival.priority) == (7.0, 0)


def test_the_mapping_knows_better_than_what_was_measured_and_both_better_than_a_word_for_all() -> None:
    costs = Costs(
        mapping_of(
            "models: {chat: {prefill: 1000}, '*': {load: 3, prefill: 1, decode: 1, parallel: 2}}", "m"
        ).costs,
        MEASURED,
    )

    assert costs.run("chat", 1000, 10) == 2.0
    assert costs.run("other", 1, 1) == 2.0
    assert (costs.load("chat"), costs.load("other")) == (9.0, 3.0)
    assert costs.parallel("chat") == 2
    assert (Costs({}).load("chat"), Costs({}).parallel("chat")) == (None, None)


def test_tokens_of_a_model_that_nobody_has_timed_are_refused_with_what_to_do() -> None:
    with pytest.raises(BadLine, match=r"give models.new.prefill and .decode in the mapping, or --measured"):
        placing().arrival(Record(at=0, model="new", prompt=1, generated=1))


def test_columns_and_the_traces_name_decide_on_model_and_band() -> None:
    placed = placing(
        "model: {from: trace, values: {conv: chat}}\n"
        "priority: {from: Log Type, values: {API*: batch}, default: interactive}"
    )
    record = Record(at=0, model="GPT-4", run=1, fields={"Log Type": "API log"})

    assert (placed.arrival(record).model, placed.arrival(record).priority) == ("chat", -100)
    assert placed.arrival(Record(at=0, run=1)).priority == 100


def test_a_priority_can_be_mapped_by_what_the_trace_says_itself() -> None:
    placed = placing("priority: {values: {'100': normal}}")

    assert placed.arrival(Record(at=0, model="chat", run=1, priority=100)).priority == 0
    assert placed.arrival(Record(at=0, model="chat", run=1, priority=-100)).priority == -100


def test_a_model_that_nobody_names_is_refused() -> None:
    with pytest.raises(BadLine, match="the trace names no models"):
        placing().arrival(Record(at=0, run=1))


def drawn(label: str, seed: int) -> list[int]:
    placed = placing("priority: {interactive: 1, batch: 1}", label, seed)
    return [placed.arrival(Record(at=0, model="chat", run=1)).priority for _ in range(40)]


def test_lots_depend_on_the_seed_and_the_trace_only() -> None:
    assert drawn("conv", 1) == drawn("conv", 1)
    assert drawn("conv", 1) != drawn("conv", 2)
    assert drawn("conv", 1) != drawn("code", 1)
