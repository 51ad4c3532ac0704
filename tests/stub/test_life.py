"""Shells around a stub; its deaths are played by real processes."""

from __future__ import annotations

import subprocess

from llamaswap.stub.life import wrapped

WORDS = ["/usr/bin/printf", "%s|", "--port", "1", "--fork", "two words", "--fork"]


def test_a_shell_around_it_takes_away_one_fork() -> None:
    assert wrapped(WORDS)[4:] == ["/usr/bin/printf", "%s|", "--port", "1", "two words", "--fork"]


def test_the_shell_runs_the_words_as_they_are_and_takes_over_their_exit_code() -> None:
    done = subprocess.run(wrapped(WORDS), capture_output=True, check=False, timeout=10)

    assert done.stdout == b"--port|1|two words|--fork|"
    assert subprocess.run(wrapped(["false", "--fork"]), check=False, timeout=10).returncode == 1
