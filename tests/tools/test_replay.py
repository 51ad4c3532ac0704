"""Traces and boxes from the words that both commands understand."""

from __future__ import annotations

import argparse
from io import StringIO
from pathlib import Path

import pytest

from llamaswap.config.mistakes import ConfigRejected
from llamaswap.simulation.records import Unusable
from llamaswap.tools.replay import Replay, add_arguments, read
from support.replays import CONFIG, LOADS, REQUESTS
from support.traces import AZURE_2023, dispatched, store, written


def replay(*words: str | Path) -> Replay:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return read(parser.parse_args([str(word) for word in words]), {}, StringIO())


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return written(tmp_path, "few.csv", REQUESTS)


def test_without_a_configuration_the_models_are_those_that_are_asked_for(trace: Path) -> None:
    told = replay("--trace", trace, "--mapping", LOADS)

    assert list(told.box.config.models) == ["chat", "coder", "painter"]
    assert told.box.loads == {"chat": 8.0, "coder": 14.0, "painter": 20.0}
    assert (len(told.arrivals), told.notes) == (6, ())


def test_with_one_they_are_its_own_and_aliases_are_known(trace: Path, tmp_path: Path) -> None:
    config = written(tmp_path, "c.yaml", CONFIG)

    told = replay("--trace", trace, "--config", config)

    assert told.arrivals.models == ("chat", "coder", "painter")
    assert "spare" in told.box.config.models
    assert told.box.scheduler.serial.aging_divisor == 30
    assert told.notes == ("Nobody says how long a load of chat, coder, painter takes: 15 s are assumed.",)


def test_a_model_that_the_configuration_does_not_have_is_named(tmp_path: Path) -> None:
    config = written(tmp_path, "c.yaml", CONFIG)
    trace = written(tmp_path, "t.csv", "arrival_s,model,priority,run_s\n0,gpt,0,1\n")

    with pytest.raises(Unusable, match="the trace asks for 'gpt', which the configuration does not have"):
        replay("--trace", trace, "--config", config)


def test_a_bad_configuration_is_refused_as_ever(trace: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigRejected):
        replay("--trace", trace, "--config", written(tmp_path, "c.yaml", "models: 3"))


def test_loads_are_those_of_the_command_line_then_of_the_mapping_then_of_the_store(
    trace: Path, tmp_path: Path
) -> None:
    measured = store(
        tmp_path / "a.db", [dispatched(9, model, 9, 0, 4) for model in ("chat", "coder", "painter")]
    )
    mapping = "{model: {values: {c: chat}}, models: {coder: {load: 14}, chat: {load: 8, parallel: 2}}}"

    told = replay(
        "--trace", trace, "--mapping", mapping, "--measured", measured, "--load", "chat=2.5", "--load", "99"
    )

    assert told.box.loads == {"chat": 2.5, "coder": 14.0, "painter": 4.0}
    assert told.box.parallel == {"chat": 2}


def test_a_store_tells_its_own_loads_and_the_speeds_of_other_traces(tmp_path: Path) -> None:
    path = store(tmp_path / "a.db", [dispatched(1000, "chat", 20, 5, 7, priority=100)])

    told = replay("--trace", path)

    assert told.box.loads == {"chat": 7.0}
    assert [(one.priority, one.run) for one in told.arrivals] == [(100, 8.0)]
    with pytest.raises(Unusable, match="nobody says how many a second 'chat' does"):
        replay(
            "--trace",
            written(tmp_path, "z.csv", AZURE_2023),
            "--mapping",
            "{model: chat}",
            "--measured",
            path,
        )


def test_what_was_put_right_is_said(tmp_path: Path) -> None:
    text = "arrival_s,model,priority,run_s\n5,a,0,1\n3,a,0,1\nx,a,0,1\n"

    told = replay("--trace", written(tmp_path, "t.csv", text), "--skip-bad", "--load", "3")

    assert told.notes == (
        "Lines that were left out because they made no sense: 1.",
        "Requests that stood behind later ones, put in their place: 1.",
    )


@pytest.mark.parametrize("text", ["x", "chat=0", "chat=", "-1"])
def test_a_load_that_is_no_time_is_refused(trace: Path, text: str) -> None:
    with pytest.raises(Unusable, match="--load: expected a number above 0"):
        replay("--trace", trace, f"--load={text}")
