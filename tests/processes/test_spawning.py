"""How a program is found, and with what a child is started."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
from twisted.internet.defer import Deferred, succeed

from llamaswap.processes import spawning
from llamaswap.processes.child import FIRST_ROUND, CannotStart, Ending, Order
from llamaswap.processes.orphanage import Orphanage
from llamaswap.processes.spawning import (
    ChildReactor,
    SystemChildren,
    environment,
    find_launcher,
    find_program,
)
from support.processes_spawns import FakeGroups, SpawnReactor


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with one program, `serve`, and one file that is none, `notes`."""
    for name, mode in (("serve", 0o755), ("notes", 0o644)):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(mode)
    return tmp_path


class FakeKeeping:
    """Takes notes; a `Watch`."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def watch(self, pid: int) -> None:
        self.told.append(f"+{pid}")

    def forget(self, pid: int) -> None:
        self.told.append(f"-{pid}")

    def close(self) -> Deferred[None]:
        self.told.append("closed")
        return succeed(None)


class Nursery:
    """Children that are never really started."""

    def __init__(self, programs: Path) -> None:
        self.reactor = SpawnReactor()
        self.groups = FakeGroups()
        self.keeping = FakeKeeping()
        self.output: list[bytes] = []
        self.endings: list[Ending] = []
        environ = {"PATH": str(programs), "HOME": "/root", "A": "inherited"}
        self.children = SystemChildren(
            cast("ChildReactor", self.reactor),
            environ,
            groups=self.groups,
            keeping=self.keeping,
            launcher=("/launch", "--well"),
            orphanage=Orphanage(self.reactor),
        )

    def spawn(self, *argv: str, env: tuple[str, ...] = ()) -> None:
        self.children.spawn(Order(argv, env), self.output.append, self.endings.append)


@pytest.fixture
def nursery(programs: Path) -> Iterator[Nursery]:
    nursery = Nursery(programs)
    yield nursery
    nursery.reactor.close()
    for reader in tuple(nursery.reactor.readers):
        reader.close()


def test_a_name_is_looked_up_in_the_daemons_path(programs: Path) -> None:
    assert find_program(("serve", "x"), {"PATH": f"/nowhere:{programs}"}) == str(programs / "serve")


def test_a_path_is_taken_as_it_is(programs: Path) -> None:
    assert find_program((str(programs / "serve"),), {}) == str(programs / "serve")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("{}/none", "failed to start command '{}/none -m x': no such file"),
        ("{}/notes", "failed to start command '{}/notes -m x': not an executable file"),
        ("{}/", "failed to start command '{}/ -m x': not an executable file"),
        ("notes", "failed to start command 'notes -m x': no program 'notes' in PATH"),
        ("", "failed to start command: it is empty"),
    ],
)
def test_what_is_no_program_is_named(programs: Path, name: str, why: str) -> None:
    with pytest.raises(CannotStart) as caught:
        find_program((name.format(programs), "-m", "x"), {"PATH": str(programs)})

    assert str(caught.value) == why.format(programs)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("{}/" + "x" * 300, "File name too long"),
        ("{}/loop", "Too many levels of symbolic links"),
        ("{}/notes/serve", "Not a directory"),
    ],
)
def test_what_cannot_even_be_looked_at_is_no_program_either(programs: Path, name: str, why: str) -> None:
    (programs / "loop").symlink_to(programs / "loop")

    with pytest.raises(CannotStart, match=f"^failed to start command '.*': cannot look at '.*': {why}$"):
        find_program((name.format(programs),), {})


def test_a_folder_that_is_closed_to_us_hides_a_program(
    programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs the tests may be root, to whom no folder is closed."""
    look = os.stat

    def denied(path: str, **how: bool) -> os.stat_result:
        if "/root/bin" not in str(path):
            return look(path, **how)
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "stat", denied)

    with pytest.raises(CannotStart, match="Permission denied"):
        find_program(("/root/bin/serve",), {})


def test_a_later_entry_of_the_environment_wins() -> None:
    added = ("A=1", "B=", "A=2=2", "nonsense", "=x")

    assert environment({"A": "0", "C": "3"}, added) == {"A": "2=2", "B": "", "C": "3"}


def test_a_child_is_started_through_the_launcher_with_its_own_words(nursery: Nursery, programs: Path) -> None:
    nursery.spawn("serve", "--port", "1", env=("A=own", "PATH=/elsewhere"))

    (process,) = nursery.reactor.spawned
    assert process.words == ["/launch", "--well", str(programs / "serve"), "--port", "1"]
    assert process.env == {"PATH": "/elsewhere", "HOME": "/root", "A": "own"}


def test_a_child_reads_nothing_and_writes_to_its_log(nursery: Nursery) -> None:
    nursery.spawn("serve")
    descriptors = nursery.reactor.spawned[0].descriptors
    assert sorted(descriptors) == [0, 1, 2]

    assert os.read(descriptors[0], 1) == b""
    os.write(descriptors[1], b"out ")
    os.write(descriptors[2], b"err")
    next(iter(nursery.reactor.readers)).doRead()

    assert nursery.output == [b"out err"]


def test_the_keeper_knows_a_child_from_its_start_to_its_end(nursery: Nursery) -> None:
    nursery.spawn("serve")
    (process,) = nursery.reactor.spawned
    assert nursery.keeping.told == [f"+{process.pid}"]
    for number in (1, 2):
        os.close(process.descriptors.pop(number))

    next(iter(nursery.reactor.readers)).doRead()
    process.ends(1)
    nursery.reactor.advance(0)

    assert nursery.keeping.told == [f"+{process.pid}", f"-{process.pid}"]
    assert nursery.endings == [Ending("exited with code 1", clean=False)]
    assert nursery.reactor.readers == set()


def test_the_keeper_knows_those_who_have_left_a_childs_session_until_nothing_of_it_is_left(
    nursery: Nursery,
) -> None:
    nursery.spawn("serve")
    (process,) = nursery.reactor.spawned
    nursery.groups.strays = {7}

    nursery.reactor.advance(FIRST_ROUND)

    assert nursery.keeping.told == [f"+{process.pid}", "+7"]
    for number in (1, 2):
        os.close(process.descriptors.pop(number))
    next(iter(nursery.reactor.readers)).doRead()
    process.ends()
    nursery.reactor.advance(0)
    assert nursery.keeping.told[2:] == [f"-{process.pid}", "-7"]


@pytest.mark.parametrize("error", [OSError("too many"), ValueError("embedded null byte"), TypeError("str")])
def test_a_start_that_fails_leaves_no_descriptor_open(nursery: Nursery, error: OSError) -> None:
    nursery.reactor.refusal = error
    before = sorted(entry.name for entry in Path("/proc/self/fd").iterdir())

    with pytest.raises(CannotStart, match=str(error)):
        nursery.spawn("serve")

    assert sorted(entry.name for entry in Path("/proc/self/fd").iterdir()) == before
    assert nursery.keeping.told == []


def test_closing_kills_what_runs_and_lets_the_keeper_go(nursery: Nursery) -> None:
    nursery.spawn("serve")
    assert len(nursery.reactor.getDelayedCalls()) == 2  # the orphanage's next round, and the child's

    assert nursery.children.close().called

    assert nursery.groups.signals == [(nursery.reactor.spawned[0].pid, "SIGKILL")]
    assert nursery.keeping.told[-1] == "closed"
    assert len(nursery.reactor.getDelayedCalls()) == 1  # the child's, which has yet to end


def test_the_launcher_is_util_linux_where_both_its_tools_are(programs: Path) -> None:
    for name in ("setpriv", "setsid"):
        (programs / name).write_text("")
        (programs / name).chmod(0o755)

    words = find_launcher({"PATH": str(programs)})

    assert words == (str(programs / "setpriv"), "--pdeathsig", "KILL", str(programs / "setsid"))


def _only_one(programs: Path) -> None:
    (programs / "setsid").symlink_to(programs / "serve")


def _both_in_one_box(programs: Path) -> None:
    for name in ("setpriv", "setsid"):
        (programs / name).symlink_to(programs / "serve")


@pytest.mark.parametrize("prepare", [_only_one, _both_in_one_box])
def test_elsewhere_the_launcher_is_python(programs: Path, prepare: Callable[[Path], None]) -> None:
    prepare(programs)

    words = find_launcher({"PATH": str(programs)})

    assert words[0] == sys.executable
    assert words[-1] == str(os.getpid())


def test_without_a_descriptor_to_look_at_its_port_with_a_child_cannot_start(
    nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_many(_: int) -> bool:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(spawning, "is_taken", too_many)

    with pytest.raises(CannotStart) as caught:
        nursery.children.spawn(Order(("serve",), port=1), nursery.output.append, nursery.endings.append)

    assert "Too many open files" in str(caught.value)
    assert nursery.reactor.spawned == []
