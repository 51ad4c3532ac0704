"""The command line, and the document of it."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from llamaswap.stub.options import Manner
from llamaswap.stub.switches import make_parser, numbers

DOCUMENT = Path(__file__).parents[2] / "docs" / "stub.md"


def test_numbers_are_one_or_one_for_each_start() -> None:
    assert numbers("3") == (3.0,)
    assert numbers("25,1") == (25.0, 1.0)
    assert numbers("2,-") == (2.0, None)


@pytest.mark.parametrize("words", [[], ["--port", "1", "--loud"], ["--port", "1", "--usage", "[]"]])
def test_a_bad_command_line_is_one_line_and_exit_code_2(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        make_parser().parse_args(words)

    assert end.value.code == 2
    assert capsys.readouterr().err.startswith("stub: bad command line: ")


def test_an_abbreviation_is_no_switch() -> None:
    with pytest.raises(SystemExit):
        make_parser().parse_args(["--port", "1", "--reco", "file"])


def test_the_document_has_every_switch_with_its_help_and_no_other() -> None:
    told = dict(re.findall(r"^\| `(--[a-z-]+)[^`]*` \| (.*) \|$", DOCUMENT.read_text(), re.MULTILINE))
    actions = [action for action in make_parser()._actions if action.dest != "help"]

    assert told == {action.option_strings[0]: action.help for action in actions}


def test_the_document_has_every_field_of_a_wish_that_is_no_switch() -> None:
    rows = DOCUMENT.read_text().partition("## One request")[2].partition("## The record")[0]
    told = set(re.findall(r"^\| `([a-z_]+)` \|", rows, re.MULTILINE))
    switches = {action.dest for action in make_parser()._actions} | {"done"}

    assert told == {field.name for field in fields(Manner)} - switches
