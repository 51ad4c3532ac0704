"""A case from the field: models on stubs, a daemon in front, clients, and what holds when all is over.

    with Field(tmp_path, {"A": stub("--load 1", ttl=1), "B": stub()}) as field:
        assert field.chat("A").ok
        slow = field.send("A", stream=True, stub={"tokens": 50, "gap": 0.1})
        field.until(lambda: field.records("arrived", "A"), "A's second request")
        slow.leave("rst")

At its end: `/running` agrees with the process list, `/health` is 200, no
request waits, an unload leaves no model's process, descriptors and memory
are back at the base line, the daemon stops within its limit with exit code 0
and leaves nobody behind, no failure is in its log, and no two stubs wanted
the lock at once.
"""

from __future__ import annotations

import json
import shlex
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from support.field_call import CHAT, Call, request_for
from support.field_client import PATIENCE, Client, Network, release
from support.field_ledger import LEDGER
from support.field_models import Model, configuration, stub
from support.real_daemon import LLAMA_SWAP, STOP, Daemon
from support.real_daemon_processes import connections, served_models, words_of
from support.real_daemon_talk import Answer, ask, request_bytes, until

__all__ = ["Field", "Model", "stub"]

MIB = 1 << 20

SPARE_DESCRIPTORS = 2
"""More than at the base line: the question how many there are may come while one is open."""

SPARE_MEMORY = 8 * MIB
"""The same for memory: rows, logs, captures, what is made on demand and kept.  Three swaps need 0.2 MiB."""

STUB_STOP = 25.0  # seconds in which an unload is over: the longest time a case gives a stub, and some


class Field:
    """One daemon with its models and its clients.

    Args:
        folder: for configuration, records and logs.
        models: by name; a string = the switches of its stub.
        config: further keys of the configuration, each instead of the usual one.
        command: the words before `--config`, if others than the daemon's.
        environ: added to its environment.
        spare_memory: bytes that it may have more at the end than at the base line.
        contended: whether two stubs may want the lock at once.
        within: seconds in which it stops at the end.
    """

    def __init__(
        self,
        folder: Path,
        models: Mapping[str, Model | str],
        *,
        config: Mapping[str, Any] | None = None,
        command: Sequence[str] = LLAMA_SWAP,
        environ: Mapping[str, str] | None = None,
        spare_memory: int = SPARE_MEMORY,
        contended: bool = False,
        within: float = STOP,
    ) -> None:
        self.folder = folder
        self._models = {
            name: stub(model) if isinstance(model, str) else model for name, model in models.items()
        }
        self.config = configuration(folder, self._models, config or {})
        self._how: dict[str, Any] = {"command": command, "environ": environ}
        self._spare_memory = spare_memory
        self._contended = contended
        self._within = within
        self._calls: list[Call] = []
        self._stack = ExitStack()
        self._base = (0, 0)

    def __enter__(self) -> Self:
        LEDGER.closing = False
        self.network = Network()
        self._stack.callback(self.network.close)
        self.daemon = Daemon(self.folder, json.dumps(self.config), **self._how)
        self._stack.callback(self.daemon.destroy)
        try:
            self.daemon.wait_started()
            assert self.get("/health").status == 200
            self.base()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        LEDGER.closing = True
        with self._stack:
            if error is None:
                try:
                    self._hold()
                except BaseException as failure:
                    failure.add_note(self._last_words())
                    raise
            else:
                error.add_note(self._last_words())

    # --- requests ------------------------------------------------------------------------------------------

    def prepare(self, model: str, *, stream: bool = False, path: str = CHAT, **more: Any) -> Call:
        """Make a connection for a request, and send nothing yet; `more` as in `field_call.request_for`."""
        LEDGER.wished(more.get("stub"))
        request = request_for(model, stream=stream, path=path, **more)
        client = Client(self.network, self.daemon.port, request, f"{path} of {model} {more.get('tag', '')}")
        call = Call(client, model, stream=stream)
        self._calls.append(call)
        return call

    def visit(self, path: str, method: str = "GET", **how: Any) -> Call:
        """Prepare a request for any page; `how` as in `request_bytes`."""
        client = Client(
            self.network, self.daemon.port, request_bytes(method, path, **how), f"{method} {path}"
        )
        self._calls.append(call := Call(client, "", stream=False))
        return call

    def send(self, model: str, **more: Any) -> Call:
        """Send a request, and don't wait for its answer."""
        call = self.prepare(model, **more)
        call.client.go()
        return call

    def chat(self, model: str, deadline: float = PATIENCE, **more: Any) -> Call:
        """Send a request and wait for its end."""
        return self.send(model, **more).wait(deadline)

    def together(self, calls: Sequence[Call]) -> Sequence[Call]:
        """Send prepared requests in the same instant."""
        release(self.network, [call.client for call in calls])
        return calls

    def get(self, path: str) -> Answer:
        """GET a page of the daemon's own."""
        return ask(self.daemon.port, "GET", path)

    def post(self, path: str, body: bytes = b"") -> Answer:
        """POST to one of them."""
        return ask(self.daemon.port, "POST", path, body)

    # --- what is seen --------------------------------------------------------------------------------------

    def records(self, event: str, model: str = "", tag: str = "") -> list[dict[str, Any]]:
        """What stubs have noted, in its order.

        Args:
            event: `started`, `arrived`, `request` (when it is over; `left` = its client had gone), `term`,
                `left` (the process ended after it), `died`, `contended`.
            model: the stub's own name; '' = any.
            tag: of the request; '' = any.
        """
        return [
            note
            for note in self.notes()
            if note["event"] == event and model in ("", note["alias"]) and (not tag or note.get("tag") == tag)
        ]

    def notes(self) -> list[dict[str, Any]]:
        """All that they have noted."""
        path = self.folder / "record"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def starts(self, model: str = "") -> int:
        """How many times a model's stub was started; '' = all of them."""
        return len(self.records("started", model))

    def processes(self, model: str = "") -> list[int]:
        """The processes that belong to a model, shells included; '' = any model's."""
        lines = {pid: " ".join(words_of(pid)) + " " for pid in self.daemon.children()}
        mark = f"--alias {shlex.quote(model)} " if model else ""
        return [pid for pid, line in lines.items() if "llamaswap.stub" in line and mark in line]

    def running(self) -> dict[str, str]:
        """Model to state, as `/running` tells."""
        return self.daemon.running()

    def rows(self, at_least: int = 0) -> list[dict[str, Any]]:
        """The activity rows, oldest first, once there are so many."""
        return self.daemon.rows(at_least)

    def log(self, word: str = "") -> list[str]:
        """The daemon's lines that have a word in them."""
        return [line for line in self.daemon.output().splitlines() if word in line]

    def metric(self, name: str) -> float:
        """The sum of a metric over all its labels."""
        return self.daemon.total(name)

    @staticmethod
    def until(holds: Callable[[], object], what: str, deadline: float = 20.0) -> None:
        """Wait until something holds; a failure of the test if it does not within so many seconds."""
        until(holds, what, deadline)

    # --- the base line, and the end ------------------------------------------------------------------------

    def base(self) -> None:
        """Take the present use of descriptors and memory as the base line of the end, as after a warm-up."""
        until(lambda: connections(self.daemon.port) == 0, "the end of all connections")
        self._base = (len(self.daemon.descriptors()), self.daemon.memory())

    def unload(self) -> None:
        """Stop every model, and wait until no process is left of any."""
        assert self.get("/unload").status == 200
        until(lambda: not self.processes() and not self.running(), "models to be unloaded", STUB_STOP)

    def stop(self, signum: int = signal.SIGTERM, within: float | None = None) -> float:
        """Stop the daemon, and hold it to that; returns the seconds it took."""
        return self.daemon.stop(signum, self._within if within is None else within)

    def _hold(self) -> None:
        """Hold the daemon to what it has promised, unless the case itself has ended it."""
        alive = self.daemon.process.poll() is None
        LEDGER.ended(self._calls, self.notes(), alive=alive)
        for call in self._calls:
            call.client.leave()
        if alive:
            self._hold_running()
            self.stop()
        until(lambda: not self.processes(), "the end of every stub", 10.0)
        with suppress(AssertionError):  # the keeper of a killed daemon ends a moment after it
            until(lambda: not self.daemon.children(), "the end of every process", 5.0)
        for pid in self.daemon.children():
            LEDGER.leaked(words_of(pid))
        for word in ("Traceback", "Unhandled"):
            assert word not in self.daemon.output(), self.log(word)
        contended = self.records("contended")
        assert self._contended or not contended, f"two at once: {contended}"

    def _hold_running(self) -> None:
        def agrees() -> bool:
            return set(self.running()) == served_models(self.daemon.mark)

        until(agrees, f"/running to be what runs: {self.running()}", STUB_STOP)
        assert self.get("/health").status == 200
        until(lambda: self.daemon.waiting() == 0, "an empty queue")
        self.unload()
        descriptors, memory = self._base
        limit = descriptors + SPARE_DESCRIPTORS
        until(lambda: len(self.daemon.descriptors()) <= limit, f"{descriptors} descriptors, not more", 10.0)
        grown = self.daemon.memory() - memory
        LEDGER.grown(grown, len(self.daemon.descriptors()) - descriptors)
        assert grown <= self._spare_memory, f"{grown / MIB:.1f} MiB more than at the base line"

    def _last_words(self) -> str:
        return f"the daemon's last words:\n{self.daemon.output()[-3000:]}"
