"""Whom a keeper would kill, and whom not."""

from __future__ import annotations

import os
import subprocess
import sys

from llamaswap.processes import keeper


def test_it_notes_who_is_watched_and_who_no_longer() -> None:
    watched: dict[int, int | None] = {}

    keeper.note(watched, b"+%d" % os.getpid())
    keeper.note(watched, b"+4194999")
    keeper.note(watched, b"-4194999")

    assert list(watched) == [os.getpid()]
    assert watched[os.getpid()] is not None


def test_nonsense_and_the_first_process_are_never_watched() -> None:
    watched: dict[int, int | None] = {}

    for line in (b"", b"+", b"+x", b"12", b"+1", b"+0", b"+-1", b"?5"):
        keeper.note(watched, line)

    assert watched == {}


def test_a_leader_is_doomed_with_its_whole_session() -> None:
    with subprocess.Popen(["sleep", "100"], start_new_session=True) as sleeper:
        watched: dict[int, int | None] = {}
        keeper.note(watched, b"+%d" % sleeper.pid)

        doomed = keeper.doomed(sleeper.pid, watched[sleeper.pid])
        sleeper.kill()

    assert doomed == [sleeper.pid]


def test_a_leader_of_another_birth_is_left_alone() -> None:
    entry = keeper.look(os.getpid())
    assert entry is not None

    assert keeper.doomed(os.getpid(), entry.born - 1) == []
    assert keeper.doomed(os.getpid(), None) == []


def test_a_number_that_nobody_carries_dooms_nobody() -> None:
    assert keeper.look(4194999) is None
    assert keeper.doomed(4194999, 7) == []


def test_as_a_program_it_kills_what_is_left_when_its_input_ends() -> None:
    program = [sys.executable, "-I", "-S", keeper.__file__]
    with (
        subprocess.Popen(["sleep", "100"], start_new_session=True) as doomed,
        subprocess.Popen(["sleep", "100"], start_new_session=True) as spared,
    ):
        lines = b"+%d\n+%d\n-%d\n" % (doomed.pid, spared.pid, spared.pid)

        subprocess.run(program, input=lines, check=True, timeout=20)

        assert doomed.wait(timeout=10) == -9
        assert spared.poll() is None
        spared.kill()
