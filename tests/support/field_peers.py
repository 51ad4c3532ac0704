"""Stubs that a daemon does not start: machines elsewhere, as far as it knows."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from support.field_models import STUB
from support.field_ports import free_ports
from support.real_daemon_talk import ask, until


@contextmanager
def remote(*names: str) -> Iterator[dict[str, str]]:
    """Run a stub for each name; yields their URLs."""
    first = free_ports(len(names))
    ports = {name: first + number for number, name in enumerate(names)}
    running = [
        subprocess.Popen([*STUB, "--port", str(port), "--alias", name], stdout=subprocess.DEVNULL)
        for name, port in ports.items()
    ]
    try:
        for port in ports.values():
            until(lambda port=port: _answers(port), "a remote stub")  # type: ignore[misc]  # mypy cannot infer a lambda's default
        yield {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
    finally:
        for process in running:
            process.terminate()
        for process in running:
            process.wait(10)


def _answers(port: int) -> bool:
    try:
        return ask(port, "GET", "/health").status == 200
    except OSError:
        return False
