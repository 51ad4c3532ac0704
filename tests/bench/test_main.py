"""Choosing what to measure, and what a failure does to the rest."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import bench.__main__ as command
from bench.figures import Curve, Figure
from bench.launching import Failed


def pretend(monkeypatch: pytest.MonkeyPatch, failing: str = "") -> list[str]:
    """Let every module measure nothing but its own name; returns who was asked, in order."""
    asked: list[str] = []

    def imported(path: str) -> SimpleNamespace:
        name = path.rpartition(".")[2]

        def measure(*_arguments: object) -> Figure | Curve:
            asked.append(name)
            if name == failing:
                raise Failed("the machine is on fire")
            if "growth" in path:
                return Curve(name, name, "x", "y")
            return Figure(name, name, "us", {"llamaswap": [1.0]})

        return SimpleNamespace(measure=measure)

    monkeypatch.setattr(command, "import_module", imported)
    return asked


def test_everything_is_measured_in_a_readers_order() -> None:
    scenarios, curves = command.chosen("")

    assert tuple(scenarios) == command.ORDER
    assert curves == sorted(curves) != []


def test_some_things_can_be_chosen() -> None:
    assert command.chosen("cpu_request,latency") == (["latency", "cpu_request"], [])
    assert command.chosen("growth") == ([], command.chosen("")[1])


def test_a_name_that_is_none_is_an_error_of_the_caller(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--only", "latency,latenzy"]) == 2
    assert "unknown: latenzy" in capsys.readouterr().err


def test_what_was_asked_for_is_measured_and_written_where_it_should_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = pretend(monkeypatch)
    path = tmp_path / "results.json"

    assert command.main(["--only", "idle,abort", "--quick", "--results", str(path)]) == 0

    written = json.loads(path.read_text())
    assert asked == list(written["figures"]) == ["abort", "idle"]
    assert written["run"] == {"rounds": 3, "quick": True}


def test_a_failure_costs_only_what_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = pretend(monkeypatch, failing="abort")
    path = tmp_path / "results.json"

    assert command.main(["--only", "idle,abort", "--results", str(path)]) == 1

    assert asked == ["abort", "idle"]
    assert list(json.loads(path.read_text())["figures"]) == ["idle"]
    assert "could not measure abort: the machine is on fire" in capsys.readouterr().err


def test_a_part_of_a_run_does_not_replace_the_whole_ones_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch)
    monkeypatch.chdir(tmp_path)

    assert command.main(["--only", "idle,models"]) == 0

    assert list(tmp_path.iterdir()) == []
