"""A bar for people, and for nobody else."""

from __future__ import annotations

from io import StringIO

from typing_extensions import override

from llamaswap.simulation.progress import bar


class Terminal(StringIO):
    @override
    def isatty(self) -> bool:
        return True


def test_somebody_at_a_terminal_sees_how_far_it_is() -> None:
    terminal = Terminal()

    with bar(terminal, "playing") as report:
        report(0, None)
        report(100, 200)

    assert "playing" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r")


def test_a_file_stays_empty() -> None:
    file = StringIO()

    with bar(file, "playing") as report:
        report(100, 200)

    assert file.getvalue() == ""
