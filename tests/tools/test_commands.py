"""Words in, text and an exit code out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest

from llamaswap.tools.commands import COMMANDS, run, usage
from llamaswap.tools.dump import effective
from llamaswap.tools.schema import schema
from support.tools_configs import GROUPS, MATRIX, WRONG, grouped, sets


@dataclass(frozen=True, slots=True)
class Told:
    """What a command wrote, and its exit code."""

    code: int
    out: str
    err: str


def told(*words: str | Path, **environ: str) -> Told:
    out, err = StringIO(), StringIO()
    code = run([str(word) for word in words], out, err, environ)
    return Told(code, out.getvalue(), err.getvalue())


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder with a configuration of each kind."""
    for name, text in (("groups", GROUPS), ("matrix", MATRIX), ("wrong", WRONG)):
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    return tmp_path


def test_dump_prints_what_is_in_effect(files: Path) -> None:
    answer = told("dump", files / "groups.yaml")

    assert (answer.code, answer.err) == (0, "")
    assert json.loads(answer.out) == effective(grouped())


def test_dump_reads_a_directory_and_a_file_together(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "b.yaml").write_text('models: {b: {cmd: s, proxy: "http://h"}}')
    (tmp_path / "a.yaml").write_text('models: {a: {cmd: s, proxy: "http://h"}}')

    both = told("dump", tmp_path / "a.yaml", "--config-dir", tmp_path / "more")
    alone = told("dump", "--config-dir", tmp_path / "more")

    assert list(json.loads(both.out)["models"]) == ["a", "b"]
    assert list(json.loads(alone.out)["models"]) == ["b"]


def test_dump_sees_the_environment(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("apiKeys: ['${env.KEY}']")

    assert json.loads(told("dump", tmp_path / "c.yaml", KEY="k").out)["globals"]["apiKeys"] == ["k"]


@pytest.mark.parametrize("command", [["dump"], ["explain", "a"], ["validate"]])
def test_a_rejected_configuration_names_its_mistakes_and_exits_with_1(
    files: Path, command: list[str]
) -> None:
    answer = told(command[0], files / "wrong.yaml", *command[1:])

    assert answer.code == 1
    assert "wrong.yaml:4:41: models.b.ttl: expected seconds, got 'soon'" in answer.out + answer.err
    assert (answer.out == "") == (command != ["validate"])


def test_a_file_that_is_named_in_two_ways_is_not_silently_one_of_them(files: Path) -> None:
    answer = told("validate", files / "groups.yaml", "--config", files / "wrong.yaml")

    assert (answer.code, answer.out) == (2, "")
    assert "not both" in answer.err


def test_validate_exits_with_0_when_the_file_can_be_used(files: Path) -> None:
    answer = told("validate", files / "groups.yaml")

    assert answer == Told(0, "good: 3 models, group router, fifo scheduler\n", "")


def test_explain_is_for_people(files: Path) -> None:
    answer = told("explain", files / "groups.yaml", "q", "--running", "coder,embed")

    assert answer.code == 0
    assert answer.out.startswith("qwen\n")
    assert answer.out.endswith("with coder, embed running  loading stops coder\n")


def test_explain_answers_a_question_about_evictions_for_programs(files: Path) -> None:
    answer = told("explain", files / "matrix.yaml", "c", "--json", "--running", "a,b")

    assert json.loads(answer.out) == {"target": "c", "running": ["a", "b"], "stop": ["b"]}


def test_explain_takes_its_words_in_any_order(files: Path) -> None:
    answer = told("explain", "--running", "b", files / "matrix.yaml", "--running", "a", "c", "--json")

    assert json.loads(answer.out)["running"] == ["a", "b"]


def test_explain_knows_that_nothing_may_run(files: Path) -> None:
    answer = told("explain", files / "matrix.yaml", "c", "--json", "--running", "")

    assert json.loads(answer.out) == {"target": "c", "running": [], "stop": []}


def test_explain_takes_a_name_with_a_comma_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(
        'models: {"a,b": {cmd: s, proxy: "http://h"}, c: {cmd: s, proxy: "http://h"}}'
    )

    answer = told("explain", tmp_path / "c.yaml", "c", "--json", "--running", "a,b")

    assert json.loads(answer.out)["running"] == ["a,b"]


def test_explain_describes_a_model_for_programs(files: Path) -> None:
    facts = json.loads(told("explain", files / "matrix.yaml", "a", "--json").out)

    assert facts["settings"] == effective(sets())["models"]["a"]
    assert facts["evicts"] == ["lone"]


def test_explain_needs_no_file_beside_a_directory(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(MATRIX)

    assert told("explain", "--config-dir", tmp_path, "a").code == 0


def test_explain_says_that_there_is_no_such_model(files: Path) -> None:
    answer = told("explain", files / "groups.yaml", "codr")

    assert answer == Told(1, "", "'codr' is no model or alias in this configuration; did you mean 'coder'?\n")


def test_schema_needs_no_configuration() -> None:
    assert json.loads(told("schema").out) == schema()


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nonsense"],
        ["dump"],
        ["validate"],
        ["explain", "file"],
        ["dump", "file", "another"],
        ["dump", "file", "--color"],
        ["explain", "file", "model", "--running"],
        ["schema", "file"],
    ],
)
def test_words_that_make_no_sense_are_answered_with_the_usage_and_2(words: list[str]) -> None:
    answer = told(*words)

    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("usage: llama-swap")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command: str) -> None:
    answer = told(command, "--help")

    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith(f"usage: llama-swap {command}")
    assert f"  {command:<10} {COMMANDS[command].help}\n" in usage()
