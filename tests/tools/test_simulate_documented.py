"""The page about tuning says what its commands say: each is run, and its text compared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.tuning_page import SHOWN, words_of
from support.documents import ROOT, read
from support.replays import told

PAGE = "docs/tuning.md"
ANSWERED = SHOWN.findall(read(PAGE))


@pytest.mark.parametrize(("command", "text"), ANSWERED)
def test_a_command_says_what_the_page_shows(
    command: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    words, picture = words_of(command), None
    if "--plot" in words:
        place = words.index("--plot") + 1
        picture, words[place] = ROOT / words[place], str(tmp_path / "a.svg")

    answer = told(*words)

    assert (answer.code, answer.err) == (0, "")
    assert answer.out.strip("\n") == text.strip("\n")
    if picture is not None:
        assert (tmp_path / "a.svg").read_bytes() == picture.read_bytes()
        assert f"(plots/{picture.name})" in read(PAGE)


def test_the_numbers_in_the_sentences_are_those_of_the_tables() -> None:
    sentences = re.sub(r"^```.*?^```$", "", read(PAGE), flags=re.DOTALL | re.MULTILINE)
    chapters = sentences[sentences.index("## Replay") : sentences.index("## Your own trace")]
    in_tables = set(re.findall(r"\b\d+\b", " ".join(text for _, text in ANSWERED)))
    in_sentences = re.findall(r"\b(\d+) (?:s|times)\b", chapters)

    assert len(ANSWERED) == 5
    assert len(in_sentences) >= 10
    # A thousand seconds is the distance of two bands at a divisor of 10.
    assert [number for number in in_sentences if number not in in_tables | {"1000"}] == []
