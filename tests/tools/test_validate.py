"""Everything wrong or odd with a configuration, before it is used."""

from __future__ import annotations

from pathlib import Path

from llamaswap.tools.validate import Findings, validate
from support.tools_configs import GROUPS, WRONG


def found(folder: Path, text: str) -> Findings:
    (folder / "config.yaml").write_text(text, encoding="utf-8")
    return validate(folder / "config.yaml", None, {})


def without(folder: Path, findings: Findings) -> list[str]:
    return findings.text().replace(f"{folder}/", "").splitlines()


def test_every_mistake_and_every_warning_has_its_place(tmp_path: Path) -> None:
    findings = found(tmp_path, WRONG)

    assert not findings.usable
    assert without(tmp_path, findings) == [
        "config.yaml:4:41: models.b.ttl: expected seconds, got 'soon'",
        "config.yaml:5:12: globalTTL: expected seconds from 0, got -1",
        "config.yaml:3:36: models.a.tll: unknown key; did you mean 'ttl'? (warning)",
        "can't be used: 2 mistakes",
    ]


def test_a_good_file_is_told_what_it_amounts_to(tmp_path: Path) -> None:
    findings = found(tmp_path, GROUPS)

    assert findings.usable
    assert findings.text() == "good: 3 models, group router, fifo scheduler\n"


def test_a_warning_alone_keeps_nothing_from_being_used(tmp_path: Path) -> None:
    findings = found(tmp_path, "logLevel: loud\n")

    assert findings.usable
    assert without(tmp_path, findings) == [
        "config.yaml:1:11: logLevel: 'loud' is no level, so it is taken for 'info' (warning)",
        "good: 0 models, group router, fifo scheduler, 1 warning",
    ]


def test_a_file_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    findings = validate(tmp_path / "none.yaml", None, {})

    assert without(tmp_path, findings) == [
        "none.yaml:1:1: can't read this file: No such file or directory",
        "can't be used: 1 mistake",
    ]
