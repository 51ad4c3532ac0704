"""The whole daemon as a process of its own: started, asked, stopped, and held to its promises.

Whatever a test does, at its end the daemon's idea of what runs agrees with
the process list, it stops in time with exit code 0, and nothing is left.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bench.launching import free_ports
from support.real_daemon_processes import MARK, descriptors, marked, own_memory, served_models, words_of
from support.real_daemon_talk import Answer, ask, chat_body, json_fields, until

BIN = Path(sys.executable).parent
LLAMA_SWAP = (str(BIN / "llama-swap"),)
STUB = Path(__file__).with_name("stub_upstream.py")

START = 30.0  # seconds that a start may take on a busy machine
STOP = 20.0  # seconds that a stop may take when no job runs


class Daemon:
    """One daemon, which the test may ask and must leave in order.

    Args:
        folder: for its configuration and its output.
        config: the text of its configuration.
        port: where it listens; 0 lets the kernel choose.
        environ: added to this process's environment.
        command: the words before `--config`.
        ends_by_signal: whether it ends, when all is done, by the signal that stopped it, as twistd does.
        listen: whether it is told where to listen.
        pass_fds: descriptors that it inherits, under the same numbers.
    """

    def __init__(
        self,
        folder: Path,
        config: str,
        *,
        port: int = 0,
        environ: Mapping[str, str] | None = None,
        command: Sequence[str] = LLAMA_SWAP,
        ends_by_signal: bool = False,
        listen: bool = True,
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.mark = uuid.uuid4().hex
        self.port = port
        self._ends_by_signal = ends_by_signal
        (folder / "config.yaml").write_text(config)
        self._output = folder / f"daemon-{self.mark}.log"
        words = [*command, "--config", str(folder / "config.yaml")]
        if listen:
            words += ["--listen", f"127.0.0.1:{port}"]
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                words,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**os.environ, **(environ or {}), MARK: self.mark},
                pass_fds=pass_fds,
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    def output(self) -> str:
        """What it has written so far."""
        return self._output.read_text()

    def wait_started(self) -> None:
        """Wait until it listens."""
        until(lambda: "service.started" in self.output() or self.process.poll() is not None, "a start", START)
        found = re.search(r"service\.started listening=.*?:(\d+)$", self.output(), re.MULTILINE)
        assert found is not None, f"the daemon did not start:\n{self.output()}"
        self.port = int(found[1])

    def get(self, path: str) -> Answer:
        """GET something."""
        return ask(self.port, "GET", path)

    def chat(
        self,
        model: str,
        priority: str | None = None,
        stub: Mapping[str, Any] | None = None,
        tag: str = "",
        **more: Any,
    ) -> Answer:
        """POST a chat completion."""
        fields = json_fields(priority, stub, tag)
        return ask(self.port, "POST", "/v1/chat/completions", chat_body(model, **more), fields)

    def metrics(self) -> dict[str, float]:
        """Every sample of `/metrics`, by its name with labels."""
        lines = self.get("/metrics").body.decode().splitlines()
        samples = [line.rpartition(" ") for line in lines if line and not line.startswith("#")]
        return {name: float(value) for name, _, value in samples}

    def total(self, name: str) -> float:
        """The sum of a metric over all its labels."""
        return sum(value for sample, value in self.metrics().items() if sample.partition("{")[0] == name)

    def waiting(self) -> int:
        """How many requests wait now."""
        return int(self.total("llamaswap_scheduler_queue_depth"))

    def rows(self, at_least: int = 0) -> list[dict[str, Any]]:
        """The activity rows, oldest first, once there are so many: a row is written after its answer."""
        until(lambda: self._page(1)["total"] >= at_least, f"{at_least} activity rows")
        pages = self._page(1)["total_pages"]
        return [row for page in range(pages) for row in self._page(page + 1)["data"]]

    def _page(self, number: int) -> Any:
        return self.get(f"/api/metrics/activity?order=asc&limit=500&page={number}").json

    def running(self) -> dict[str, str]:
        """Model to state, as `/running` tells."""
        return {entry["model"]: entry["state"] for entry in self.get("/running").json["running"]}

    def children(self) -> list[int]:
        """Every process that it has started, directly or not, and that lives."""
        return [pid for pid in marked(self.mark) if pid != self.pid]

    def model_processes(self, model: str) -> list[int]:
        """The processes that serve a model, wrappers included."""
        return [pid for pid in self.children() if model in words_of(pid)]

    def descriptors(self) -> list[str]:
        """What it has open."""
        return descriptors(self.pid)

    def sockets(self) -> int:
        """How many sockets it has open."""
        return sum(name.startswith("socket:") for name in self.descriptors())

    def memory(self) -> int:
        """Bytes of memory of its own."""
        return own_memory(self.pid)

    def agrees(self) -> bool:
        """Whether `/running` and the process list tell the same."""
        return set(self.running()) == served_models(self.mark)

    def stop(self, signum: int = signal.SIGTERM, within: float = STOP) -> float:
        """Stop it; returns the seconds that took.  It has to end well, and to leave nobody behind."""
        began = time.monotonic()
        self.process.send_signal(signum)
        code = self.process.wait(within)
        took = time.monotonic() - began
        assert code == (-signum if self._ends_by_signal else 0), f"exit code {code}:\n{self.output()[-3000:]}"
        self.assert_alone()
        return took

    def assert_alone(self) -> None:
        """Assert that none of its processes is left."""
        until(lambda: not self.children(), f"the end of {[words_of(pid) for pid in self.children()]}", 10.0)

    def leave(self) -> None:
        """Hold it to its promises, unless the test has ended it already."""
        if self.process.poll() is None:
            until(self.agrees, f"{self.running()} to be {served_models(self.mark)}")
            assert self.get("/health").status == 200
            self.stop()
        assert "Traceback" not in self.output(), self.output()[-3000:]
        assert "Unhandled" not in self.output(), self.output()[-3000:]

    def destroy(self) -> None:
        """End everything, whatever happened."""
        self.process.kill()
        self.process.wait()
        for pid in self.children():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextmanager
def started(folder: Path, config: str | Mapping[str, Any], **how: Any) -> Iterator[Daemon]:
    """A daemon that listens; see `Daemon` for its arguments."""
    text = config if isinstance(config, str) else json.dumps(config)
    daemon = Daemon(folder, text, **how)
    try:
        daemon.wait_started()
        yield daemon
        daemon.leave()
    except BaseException as error:
        error.add_note(f"the daemon's last words:\n{daemon.output()[-3000:]}")
        raise
    finally:
        daemon.destroy()


def stub_config(folder: Path, *models: str, words: str = "", wrap: str = "{}", **more: Any) -> dict[str, Any]:
    """A configuration whose models are stubs that evict each other; JSON is YAML.

    Args:
        words: added to each stub's command line.
        wrap: a template for the command.
    """
    stub = shlex.join([sys.executable, "-I", "-S", str(STUB), "--record", str(folder / "record")])
    command = wrap.format(f"{stub} --port ${{PORT}} --alias ${{MODEL_ID}} {words}")
    names = models or ("a", "b")
    server = {"cmd": command, "proxy": "http://127.0.0.1:${PORT}"}
    return {
        "startPort": free_ports(len(names)),
        "healthCheckTimeout": 30,
        "metricsMaxInMemory": 5000,
        "models": {name: {**server, **more} for name in names},
        "routing": {"scheduler": {"use": "serial"}},
    }


def recorded(folder: Path) -> list[dict[str, Any]]:
    """What the stubs have noted, in their order."""
    record = folder / "record"
    lines = record.read_text().splitlines(keepends=True) if record.exists() else []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def events(folder: Path, event: str) -> list[dict[str, Any]]:
    """The notes of one kind."""
    return [note for note in recorded(folder) if note["event"] == event]
