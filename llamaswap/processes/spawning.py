"""Start children: look the program up, give it a session, tie it to our life.

Twisted can neither make a session without a terminal nor ask for a signal
when the parent dies, so the child's program is reached through others that do
this and then become it: the process id stays the child's from the start.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFDSet

from llamaswap.processes.child import (
    CannotStart,
    Child,
    ChildProcess,
    ChildRunner,
    Ending,
    Order,
    PortTaken,
)
from llamaswap.processes.groups import Groups, SystemGroups
from llamaswap.processes.keeping import Keeping, KeepingReactor, Watch
from llamaswap.processes.orphanage import Orphanage
from llamaswap.processes.output import OutputPipe
from llamaswap.processes.ports import is_taken

LAUNCHER = """
import os, sys
if os.getsid(0) != os.getpid():
    os.setsid()
try:
    import ctypes
    ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
except (AttributeError, ImportError, OSError):
    pass
if os.getppid() == int(sys.argv[1]):
    try:
        os.execv(sys.argv[2], sys.argv[2:])
    except OSError as error:
        sys.exit("%s: %s" % (sys.argv[2], error.strerror))
"""
"""What takes the place of util-linux where that is missing; 1 is PR_SET_PDEATHSIG, 9 is SIGKILL."""

FIRST_PROCESS = 1

OURS_ALONE = frozenset(
    {
        "FDSTORE",
        "LISTEN_FDNAMES",
        "LISTEN_FDS",
        "LISTEN_PID",
        "LISTEN_PIDFDID",
        "MANAGERPIDFDID",
        "NOTIFY_SOCKET",
        "WATCHDOG_PID",
        "WATCHDOG_USEC",
    }
)
"""What systemd says to the daemon and to nobody below it: a child could report in our place, or take one
of its own descriptors for a socket."""


class ChildReactor(KeepingReactor, IReactorFDSet):
    """What it takes to run children and read what they write."""


class SystemChildren:
    """Children of this process; a `ChildRunner`."""

    def __init__(
        self,
        reactor: ChildReactor,
        environ: Mapping[str, str],
        *,
        groups: Groups,
        keeping: Watch,
        launcher: tuple[str, ...],
        orphanage: Orphanage | None = None,
    ) -> None:
        """Make ready; nothing is started yet.

        Args:
            environ: what children inherit, and whose PATH finds programs.
            launcher: words before a child's own, as from `find_launcher`.
            orphanage: opened with the first child, where orphans fall to us.
        """
        self._reactor = reactor
        self._environ = environ
        self._groups = groups
        self._keeping = keeping
        self._launcher = launcher
        self._orphanage = orphanage
        self._running: set[ChildProcess] = set()

    def spawn(self, order: Order, output: Callable[[bytes], None], ended: Callable[[Ending], None]) -> Child:
        """See `ChildRunner`."""
        program = find_program(order.argv, self._environ)
        _expect_free(order)
        reading, writing = _pipe(order.argv)

        def finished(ending: Ending) -> None:
            pipe.close()
            self._running.discard(child)
            for pid in (child.pid, *self._groups.forget(child.pid)):
                self._keeping.forget(pid)
            ended(ending)

        strayed = None if order.detaches else self._keeping.watch
        child = ChildProcess(self._groups, self._reactor, finished, strayed)
        try:
            self._start(child, program, order, writing)
        except (OSError, ValueError, TypeError) as error:
            os.close(reading)
            raise _cannot_start(order.argv, str(error)) from error
        finally:
            os.close(writing)
        self._keeping.watch(child.pid)
        if self._orphanage is not None:
            self._orphanage.open()
        self._running.add(child)
        pipe = OutputPipe(self._reactor, reading, output, child.output_closed)
        return child

    def close(self) -> Deferred[None]:
        """See `ChildRunner`."""
        for child in tuple(self._running):
            child.kill()
        if self._orphanage is not None:
            self._orphanage.close()
        return self._keeping.close()

    def _start(self, child: ChildProcess, program: str, order: Order, writing: int) -> None:
        words = [*self._launcher, program, *order.argv[1:]]
        nowhere = os.open(os.devnull, os.O_RDONLY)
        try:
            self._reactor.spawnProcess(
                child,
                words[0],
                words,
                env=environment(self._environ, order.env),
                childFDs={0: nowhere, 1: writing, 2: writing},
            )
        finally:
            os.close(nowhere)


def make_children(reactor: ChildReactor, environ: Mapping[str, str]) -> ChildRunner:
    """Make what starts the children of one daemon; its owner closes it."""
    setsid = shutil.which("setsid", path=environ.get("PATH", os.defpath))
    return SystemChildren(
        reactor,
        environ,
        groups=SystemGroups(),
        keeping=Keeping(reactor, () if setsid is None else (setsid,)),
        launcher=find_launcher(environ),
        orphanage=Orphanage(reactor) if os.getpid() == FIRST_PROCESS else None,
    )


def find_launcher(environ: Mapping[str, str]) -> tuple[str, ...]:
    """The words that put a child into its own session and tie it to this process."""
    path = environ.get("PATH", os.defpath)
    setpriv, setsid = shutil.which("setpriv", path=path), shutil.which("setsid", path=path)
    if setpriv is None or setsid is None or not (_is_genuine(setpriv) and _is_genuine(setsid)):
        return (sys.executable, "-I", "-S", "-c", LAUNCHER, str(os.getpid()))
    # The session comes second: as a group's leader, setsid would have to fork.
    return (setpriv, "--pdeathsig", "KILL", setsid)


def find_program(argv: tuple[str, ...], environ: Mapping[str, str]) -> str:
    """Where `argv[0]` is: in the daemon's own PATH, or where its slashes say.

    Raises:
        CannotStart: nowhere, or not as a program.
    """
    if not argv or not argv[0]:
        raise CannotStart("failed to start command: it is empty")
    name = argv[0]
    if "/" not in name:
        found = shutil.which(name, path=environ.get("PATH", os.defpath))
        if found is None:
            raise _cannot_start(argv, f"no program {name!r} in PATH")
        return str(Path(found).absolute())
    try:
        is_file = stat.S_ISREG(os.stat(name).st_mode)  # noqa: PTH116 - as os.access below
    except FileNotFoundError as error:
        raise _cannot_start(argv, "no such file") from error
    except (OSError, ValueError) as error:  # a folder that nobody may look into, a name that is too long
        raise _cannot_start(argv, f"cannot look at {name!r}: {_reason(error)}") from error
    if not (is_file and os.access(name, os.X_OK)):
        raise _cannot_start(argv, "not an executable file")
    return name


def environment(inherited: Mapping[str, str], entries: tuple[str, ...]) -> dict[str, str]:
    """What a child finds in its environment; a later NAME=value wins, and `OURS_ALONE` is not handed down."""
    ours = {name: value for name, value in inherited.items() if name not in OURS_ALONE}
    added = (entry.partition("=") for entry in entries)
    return {**ours, **{name: value for name, sign, value in added if name and sign}}


def _is_genuine(program: str) -> bool:
    """Whether this is util-linux's: those in one box for all know fewer options."""
    return Path(program).resolve().name == Path(program).name


def _expect_free(order: Order) -> None:
    """Whoever listens on its port would answer the probe, and our clients, in our child's place."""
    try:
        taken = order.port is not None and is_taken(order.port)
    except OSError as error:  # no descriptor is left to ask with
        raise _cannot_start(order.argv, str(error)) from error
    if taken:
        why = _cannot_start(order.argv, f"port {order.port} is in use by another process")
        raise PortTaken(str(why))


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _cannot_start(argv: tuple[str, ...], why: str) -> CannotStart:
    return CannotStart(f"failed to start command '{' '.join(argv)}': {why}")


def _pipe(argv: tuple[str, ...]) -> tuple[int, int]:
    try:
        reading, writing = os.pipe()
    except OSError as error:
        raise _cannot_start(argv, str(error)) from error
    os.set_blocking(reading, False)
    return reading, writing
