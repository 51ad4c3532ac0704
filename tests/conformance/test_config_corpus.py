"""Configurations of the wild, recorded with what the reference implementation makes of them.

`config.md` next to this file says what a recorded case looks like.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from llamaswap.config.command import split_command
from llamaswap.config.load import ConfigRejected, load
from llamaswap.tools.dump import dump
from support.config_corpus import Case, accepted, differences, lay_out, read_corpus

CORPUS = read_corpus()
FILES = [case for case in CORPUS if case["kind"] in {"load", "reject", "merge"}]
COMMANDS = [case for case in CORPUS if case["kind"] == "argv"]
EVICTIONS = [case for case in CORPUS if case["kind"] == "evict"]


def test_every_recorded_case_is_played_here_or_by_the_planners() -> None:
    assert (len(FILES), len(COMMANDS), len(EVICTIONS)) == (911, 61, 154)
    assert len(FILES) + len(COMMANDS) + len(EVICTIONS) == len(CORPUS)


@pytest.mark.parametrize("case", FILES, ids=lambda case: case["id"])
def test_a_configuration_means_what_was_recorded(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lay_out(case, tmp_path)
    troubles = [list(_differences(want, case)) for want in accepted(case)]

    assert any(not trouble for trouble in troubles), "\n".join(troubles[0])


@pytest.mark.parametrize("case", EVICTIONS, ids=lambda case: case["id"])
def test_a_configuration_that_the_planners_are_asked_about_loads(case: Case, tmp_path: Path) -> None:
    lay_out(case, tmp_path)
    config = load(tmp_path / "config.yaml", None, case.get("env") or {})
    asked = {query["target"] for query in case["input"]["queries"]}
    assert asked <= config.models.keys()


@pytest.mark.parametrize("case", COMMANDS, ids=lambda case: case["id"])
def test_a_command_splits_into_the_recorded_words(case: Case) -> None:
    assert list(split_command(case["input"]["command"])) == (case["expect"]["argv"] or [])


def _differences(want: dict[str, Any], case: Case) -> list[str]:
    args = case.get("args", {"config": "config.yaml"})
    config, config_dir = (Path(args[key]) if args.get(key) else None for key in ("config", "dir"))
    try:
        loaded = load(config, config_dir, case.get("env") or {})
    except ConfigRejected as error:
        return [] if want.get("reject") else [f"rejected: {error}"]
    if want.get("reject"):
        return [f"should have been rejected: {want.get('hint', '')}"]
    return list(differences(want["config"], json.loads(dump(loaded))))
