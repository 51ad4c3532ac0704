"""What the kernel says about real processes and their groups."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from llamaswap.processes.groups import Stat, SystemGroups, read_stat


def led(sleeper: str) -> Iterator[subprocess.Popen[str]]:
    """A session whose leader waits for a line, having told the pid of what it has started."""
    script = f"{sleeper} >/dev/null 2>&1 & echo $!; read line"
    process = subprocess.Popen(
        ["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    with process:
        yield process
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def leader() -> Iterator[subprocess.Popen[str]]:
    """Such a leader beside a member that sleeps."""
    yield from led("sleep 100")


@pytest.fixture
def strayed() -> Iterator[subprocess.Popen[str]]:
    """A leader that waits for a line, and a child of it with a session of its own."""
    yield from led("setsid sleep 100")


def wait_until_dead(pid: int) -> None:
    """A killed process takes a moment to go, and another one to be reaped by whoever is its parent now."""
    deadline = time.monotonic() + 10.0
    while (stat := read_stat(pid)) is not None and stat.state not in {"Z", "X"}:
        assert time.monotonic() < deadline
        os.sched_yield()


def member_of(leader: subprocess.Popen[str]) -> int:
    assert leader.stdout is not None
    return int(leader.stdout.readline())


def wait_until_gone(leader: int) -> None:
    """A killed process takes a moment to go; each look costs one, too."""
    deadline = time.monotonic() + 10.0
    while SystemGroups().orphans(leader):
        assert time.monotonic() < deadline
        os.sched_yield()


def test_a_process_is_read_whatever_it_is_called(tmp_path: Path) -> None:
    program = tmp_path / "a) R 1 (b"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([str(program), "100"], start_new_session=True) as process:
        stat = read_stat(process.pid)
        process.kill()

    assert stat is not None
    assert (stat.parent, stat.group, stat.session) == (os.getpid(), process.pid, process.pid)
    assert read_stat(process.pid) is None


def test_a_signal_reaches_leader_and_member(leader: subprocess.Popen[str]) -> None:
    member = member_of(leader)

    SystemGroups().signal(leader.pid, signal.SIGKILL)

    assert leader.wait(timeout=10) == -signal.SIGKILL
    wait_until_gone(leader.pid)
    stat = read_stat(member)
    assert stat is None or stat.state in {"Z", "X"}


def test_who_outlives_the_leader_is_seen_and_can_be_killed(leader: subprocess.Popen[str]) -> None:
    member = member_of(leader)
    leader.communicate("\n", timeout=10)
    groups = SystemGroups()
    assert groups.orphans(leader.pid)

    groups.kill_orphans(leader.pid)

    wait_until_gone(leader.pid)
    stat = read_stat(member)
    assert stat is None or stat.state in {"Z", "X"}


def test_who_has_left_the_session_is_found_below_its_leader_and_counts_among_who_outlives_it(
    strayed: subprocess.Popen[str],
) -> None:
    groups = SystemGroups()
    stray = member_of(strayed)
    while (stat := read_stat(stray)) is None or stat.session != stray:
        os.sched_yield()

    assert groups.find_strays(strayed.pid) == {stray}
    assert groups.find_strays(strayed.pid) == frozenset()
    strayed.communicate("\n", timeout=10)
    assert groups.orphans(strayed.pid)
    assert not SystemGroups().orphans(strayed.pid), "whoever has not looked can't tell it from strangers"

    groups.kill_orphans(strayed.pid)

    wait_until_dead(stray)
    assert not groups.orphans(strayed.pid)
    assert groups.forget(strayed.pid) == {stray}
    assert groups.forget(strayed.pid) == frozenset()


def test_who_has_left_the_session_is_known_by_when_it_was_born_and_not_by_its_number_alone(
    strayed: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = SystemGroups()
    stray = member_of(strayed)
    while not groups.find_strays(strayed.pid):
        os.sched_yield()
    look = read_stat

    def reborn(pid: int) -> Stat | None:
        stat = look(pid)
        return stat if stat is None or pid != stray else stat._replace(born=stat.born + 1)

    with monkeypatch.context() as others:
        others.setattr("llamaswap.processes.groups.read_stat", reborn)
        groups.signal_strays(strayed.pid, signal.SIGKILL)
    stat = read_stat(stray)
    assert stat is not None
    assert stat.state not in {"Z", "X"}

    groups.signal_strays(strayed.pid, signal.SIGKILL)
    wait_until_dead(stray)


def test_a_number_that_somebody_carries_has_no_orphans() -> None:
    assert not SystemGroups().orphans(os.getpid())


def test_a_child_that_leads_no_group_yet_is_signalled_alone() -> None:
    with subprocess.Popen(["sleep", "100"]) as process:
        SystemGroups().signal(process.pid, signal.SIGKILL)

        assert process.wait(timeout=10) == -signal.SIGKILL


def test_somebody_elses_child_is_not_signalled(leader: subprocess.Popen[str]) -> None:
    member = member_of(leader)

    SystemGroups().signal(member, signal.SIGKILL)

    stat = read_stat(member)
    assert stat is not None
    assert stat.state not in {"Z", "X"}


def test_who_cannot_look_for_orphans_now_is_told_that_there_may_be_some(
    leader: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every descriptor may be taken for a moment; whoever asks asks again."""
    member_of(leader)

    def too_many(_: str) -> list[str]:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as crowded:
        crowded.setattr(os, "listdir", too_many)
        crowded.setattr(os.path, "isdir", lambda path: path.endswith("self"))
        assert SystemGroups().orphans(leader.pid)
        SystemGroups().kill_orphans(leader.pid)
