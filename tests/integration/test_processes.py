"""Real children on a real reactor: started, watched, stopped, and never left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from llamaswap.processes.child import CannotStart, ChildRunner, Ending, Order
from llamaswap.processes.failures import LoadFailed
from llamaswap.processes.groups import SystemGroups
from llamaswap.processes.keeping import Keeping
from llamaswap.processes.lifecycle import State
from llamaswap.processes.logbook import Logbook
from llamaswap.processes.probing import make_prober
from llamaswap.processes.server import ModelServer
from llamaswap.processes.spawning import LAUNCHER, SystemChildren, find_launcher, make_children
from support.processes_fakes import a_model
from support.processes_programs import free_port, has_ipv6, is_alive, stub, stub_facts, until, zombies_of
from support.processes_reactor import on_the_reactor, the_reactor, wait_for

pytestmark = pytest.mark.integration


@pytest.fixture
def children() -> Iterator[ChildRunner]:
    runner = make_children(the_reactor(), dict(os.environ))
    yield runner
    wait_for(runner.close())


class Ran:
    """One child that was run, with what it wrote and how it ended."""

    def __init__(self, children: ChildRunner, *argv: str, env: tuple[str, ...] = ()) -> None:
        self.output = b""
        self.ending: Ending | None = None
        self.child = children.spawn(Order(argv, env), self._wrote, self._ended)

    async def end(self) -> Ending:
        await until(the_reactor(), lambda: self.ending is not None, "the child's end")
        assert self.ending is not None
        return self.ending

    def _wrote(self, data: bytes) -> None:
        self.output += data

    def _ended(self, ending: Ending) -> None:
        assert self.ending is None, "an end is told once"
        self.ending = ending


def a_server(children: ChildRunner, **changes: Any) -> ModelServer:
    return ModelServer(
        a_model(**changes),
        children=children,
        clock=the_reactor(),
        prober=make_prober(the_reactor()),
        logbook=Logbook(),
        changed=lambda _model, _old, _new: None,
        may_expire=lambda _model: True,
    )


SEE_YOURSELF = """
import ctypes, os
death = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(death))
print(os.getpid(), os.getsid(0), os.getpgid(0), death.value)
print(sorted(map(int, os.listdir("/proc/self/fd")))[:-1])
print(os.environ["MARK"], os.readlink("/proc/self/fd/0"))
"""


@pytest.mark.parametrize("launcher", ["found", "portable"])
@on_the_reactor
async def test_a_child_leads_its_session_dies_with_us_and_inherits_nothing_else(launcher: str) -> None:
    words = find_launcher(dict(os.environ))
    if launcher == "portable":
        words = (sys.executable, "-I", "-S", "-c", LAUNCHER, str(os.getpid()))
    reactor = the_reactor()
    runner = SystemChildren(
        reactor, dict(os.environ), groups=SystemGroups(), keeping=Keeping(reactor), launcher=words
    )
    leak = os.dup(0)
    os.set_inheritable(leak, True)
    ran = Ran(runner, sys.executable, "-c", SEE_YOURSELF, env=("MARK=first", "MARK=second"))
    os.close(leak)
    await ran.end()
    await runner.close()

    pid = ran.child.pid
    assert ran.output.decode().splitlines() == [
        f"{pid} {pid} {pid} {int(signal.SIGKILL)}",
        "[0, 1, 2]",
        "second /dev/null",
    ]


@on_the_reactor
async def test_stdout_and_stderr_arrive_in_the_order_they_were_written(children: ChildRunner) -> None:
    ran = Ran(children, "sh", "-c", "for i in 1 2 3; do echo out$i; echo err$i >&2; done; exit 3")

    ending = await ran.end()

    assert ran.output == b"out1\nerr1\nout2\nerr2\nout3\nerr3\n"
    assert ending == Ending("exited with code 3", clean=False)


@on_the_reactor
async def test_a_program_that_cannot_be_executed_says_so_in_its_output(
    children: ChildRunner, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELF not really")
    broken.chmod(0o755)
    ran = Ran(children, str(broken))

    ending = await ran.end()

    assert not ending.clean
    assert b"broken" in ran.output


def test_what_is_no_program_is_refused(children: ChildRunner, tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match=r"no program .* in PATH"):
        Ran(children, "no-such-program-anywhere")
    with pytest.raises(CannotStart, match="embedded null"):
        Ran(children, "sh", "-c", "nul\0inside")


@on_the_reactor
async def test_a_signal_reaches_the_server_behind_a_wrapper(children: ChildRunner, tmp_path: Path) -> None:
    ran = Ran(children, "sh", "-c", '"$@"; true', "wrapper", *stub(tmp_path, free_port()))
    await until(the_reactor(), lambda: bool(stub_facts(tmp_path)), "the stub")
    (grandchild, _), *_ = stub_facts(tmp_path)
    assert grandchild != ran.child.pid

    ran.child.terminate()
    await ran.end()

    assert not is_alive(grandchild)


@on_the_reactor
async def test_whoever_outlives_a_crashed_wrapper_is_killed(children: ChildRunner) -> None:
    ran = Ran(children, "sh", "-c", "sleep 100 >/dev/null 2>&1 & echo $!; exit 1")

    await ran.end()

    assert not is_alive(int(ran.output))


@on_the_reactor
async def test_a_background_job_with_a_group_of_its_own_is_found_through_its_session(
    children: ChildRunner,
) -> None:
    ran = Ran(children, "bash", "-c", "set -m; sleep 100 >/dev/null 2>&1 & echo $!; exit 1")

    await ran.end()

    assert not is_alive(int(ran.output))


@on_the_reactor
async def test_readiness_is_noticed_within_moments_of_the_first_200(
    children: ChildRunner, tmp_path: Path
) -> None:
    port = free_port()
    server = a_server(children, argv=stub(tmp_path, port, 0.5), proxy=f"http://localhost:{port}")

    await server.ensure_ready()
    noticed = time.monotonic()

    (_, moment), *_ = stub_facts(tmp_path)
    assert noticed - moment < 0.2
    assert server.address.host == "127.0.0.1"
    await server.stop()


WAYS_TO_LISTEN = {"127.0.0.1": ()} | ({"::1": ("six",)} if has_ipv6() else {})


@pytest.mark.parametrize(("host", "words"), WAYS_TO_LISTEN.items())
@on_the_reactor
async def test_localhost_is_wherever_the_child_listens(
    host: str, words: tuple[str, ...], children: ChildRunner, tmp_path: Path
) -> None:
    port = free_port()
    server = a_server(children, argv=stub(tmp_path, port, 0.0, *words), proxy=f"http://localhost:{port}")

    await server.ensure_ready()

    assert server.address.host == host
    await server.stop()


@on_the_reactor
async def test_a_deaf_child_is_killed_after_its_grace_and_the_next_need_gets_a_new_one(
    children: ChildRunner, tmp_path: Path
) -> None:
    port = free_port()
    words = ("sh", "-c", '"$@"; true', "wrapper", *stub(tmp_path, port, 0.0, "deaf"))
    server = a_server(children, argv=words, proxy=f"http://127.0.0.1:{port}")
    await server.ensure_ready()
    began = time.monotonic()

    await server.stop(0.3)

    assert 0.3 <= time.monotonic() - began < 5.0
    (old, _), *_ = stub_facts(tmp_path)
    assert not is_alive(old)
    await server.ensure_ready()
    assert len(stub_facts(tmp_path)) == 2
    await server.stop(0.0)


@on_the_reactor
async def test_a_child_that_crashes_while_starting_is_noticed_by_its_exit(children: ChildRunner) -> None:
    words = ("sh", "-c", "echo out of memory >&2; kill -ABRT $$")
    server = a_server(children, argv=words, proxy=f"http://127.0.0.1:{free_port()}")
    began = time.monotonic()

    with pytest.raises(LoadFailed) as caught:
        await server.ensure_ready()

    assert time.monotonic() - began < 5.0
    assert caught.value.why == "upstream command exited prematurely: was killed by signal 6 (SIGABRT)"
    assert caught.value.output == ("out of memory",)


@on_the_reactor
async def test_a_stop_command_gets_the_childs_pid_and_no_shell(children: ChildRunner, tmp_path: Path) -> None:
    port = free_port()
    server = a_server(
        children,
        argv=stub(tmp_path, port, 0.0, "deaf"),
        proxy=f"http://127.0.0.1:{port}",
        cmd_stop="sh -c 'kill -9 $0' ${PID}",
    )
    await server.ensure_ready()
    began = time.monotonic()

    await server.stop(30.0)

    assert time.monotonic() - began < 10.0
    assert server.state is State.STOPPED


@on_the_reactor
async def test_fifty_crashes_leave_neither_zombies_nor_descriptors(children: ChildRunner) -> None:
    server = a_server(children, argv=("sh", "-c", "exit 7"), proxy=f"http://127.0.0.1:{free_port()}")

    async def crash() -> None:
        with pytest.raises(LoadFailed):
            await server.ensure_ready()

    await crash()
    before = open_descriptors()
    for _ in range(50):
        await crash()

    await until(the_reactor(), lambda: open_descriptors() == before, "closed descriptors")
    assert zombies_of(os.getpid()) == []


@on_the_reactor
async def test_a_flood_of_output_neither_blocks_the_child_nor_grows_the_logbook(
    children: ChildRunner,
) -> None:
    logbook = Logbook()
    ended: Deferred[Ending] = Deferred()
    order = Order(("sh", "-c", "yes 'a line of a log that never ends' | head -n 1000000; echo last"))

    children.spawn(order, logbook.append, ended.callback)
    await ended

    assert logbook.written == 1_000_000 * len("a line of a log that never ends\n") + len("last\n")
    assert len(logbook.history()) == 102_400
    assert logbook.tail(1) == ["last"]


@on_the_reactor
async def test_a_killed_keeper_is_replaced_and_told_everything_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llamaswap.processes.keeping.SOUND_LIFE", 0.0)
    reactor = the_reactor()
    keeping = Keeping(reactor)
    sleeper = a_sleeper()
    keeping.watch(sleeper.pid)
    keepers = keepers_of(os.getpid())
    assert len(keepers) == 1

    os.kill(keepers[0], signal.SIGKILL)
    await until(reactor, lambda: keepers_of(os.getpid()) not in ([], keepers), "another keeper")
    await keeping.close()

    assert sleeper.wait(timeout=10) == -signal.SIGKILL


@on_the_reactor
async def test_a_keeper_leaves_alone_what_was_taken_back(tmp_path: Path) -> None:
    keeping = Keeping(the_reactor())
    sleeper = a_sleeper()
    keeping.watch(sleeper.pid)
    keeping.forget(sleeper.pid)

    await keeping.close()

    assert sleeper.poll() is None
    sleeper.kill()
    sleeper.wait()


def a_sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "100"], start_new_session=True)


def open_descriptors() -> list[str]:
    return sorted(entry.name for entry in Path("/proc/self/fd").iterdir())


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def keepers_of(parent: int) -> list[int]:
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and _is_keeper(entry, parent)
    ]


def _is_keeper(entry: Path, parent: int) -> bool:
    try:
        return parent_of(int(entry.name)) == parent and b"keeper.py" in (entry / "cmdline").read_bytes()
    except OSError:
        return False


DAEMON = """
import os, sys
from twisted.internet import reactor
from llamaswap.processes.child import Order
from llamaswap.processes.spawning import make_children

children = make_children(reactor, dict(os.environ))
wrap = ("sh", "-c", '"$@"; true', "wrapper", *sys.argv[1:])
children.spawn(Order(wrap), lambda data: print(data.decode(), end="", flush=True), lambda ending: None)
reactor.run()
"""


def a_daemon(words: tuple[str, ...]) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", DAEMON, *words], stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGQUIT])
@on_the_reactor
async def test_nothing_outlives_a_daemon_that_dies_without_a_word(signum: int, tmp_path: Path) -> None:
    words = stub(tmp_path, free_port(), 0.0, "deaf")
    daemon = a_daemon(words)
    try:
        await until(the_reactor(), lambda: bool(stub_facts(tmp_path)), "the grandchild")
        (grandchild, _), *_ = stub_facts(tmp_path)
        wrapper = parent_of(grandchild)
        keepers = keepers_of(daemon.pid)
        assert is_alive(wrapper)
        assert len(keepers) == 1
    finally:
        daemon.send_signal(signum)
        daemon.wait(timeout=10)

    left = [wrapper, grandchild, *keepers]
    await until(the_reactor(), lambda: not any(is_alive(pid) for pid in left), f"the end of {left}")
