"""The program itself; what it does when it runs is played by real processes."""

from __future__ import annotations

import pytest

from llamaswap.stub.__main__ import main


def test_help_names_the_switches_and_starts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"])

    assert end.value.code == 0
    assert "--vram FILE SIZE" in capsys.readouterr().out


def test_without_a_port_it_does_not_start() -> None:
    with pytest.raises(SystemExit) as end:
        main([])

    assert end.value.code == 2
