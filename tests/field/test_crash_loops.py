"""Cases from the field: servers that end at once, again and again, and what is left of them."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from support.field import Field, stub
from support.field_hurry import all_together
from support.field_scale import Scale
from support.processes_programs import zombies_of
from support.real_daemon import LLAMA_SWAP

pytestmark = pytest.mark.integration

ADOPTING = """
import ctypes, os, sys

PR_SET_CHILD_SUBREAPER = 36
assert ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
import llamaswap.processes.spawning
import llamaswap.processes.orphanage
llamaswap.processes.spawning.FIRST_PROCESS = os.getpid()
llamaswap.processes.orphanage.ROUND = 0.2
from llamaswap.cli import main
main()
"""
"""A daemon to which orphans fall, as they do to the first process of a container."""


def lines(field: Field) -> list[str]:
    """What the daemon has written that isn't about the pages that the test looks at."""
    return [line for line in field.log() if "GET /" not in line]


@pytest.mark.lasts(seconds=66)
def test_case_012_a_server_that_aborts_while_it_loads_is_told_of_once_and_then_left_alone(
    tmp_path: Path, scale: Scale
) -> None:
    words = {"listening": "--load 60 --die-at 0.3 --sig 6", "silent": "--bind-at 60 --die-at 0.3 --sig 6"}
    models = {name: stub(switches, vram=False) for name, switches in words.items()}
    with Field(tmp_path, models, config=all_together(models)) as field:
        calls = [field.send(name) for name in models]

        for call in calls:
            # What llama-swap says when a start fails, and it says so at once.
            assert call.wait().status == 500
            assert call.took < 3.0
            message = call.json["error"]["message"]
            assert "upstream command exited prematurely: was killed by signal 6 (SIGABRT)" in message
            assert "stub: fatal error, as asked for" in message
        field.until(lambda: len(field.log("inference.failed")) == 2, "what is said about it")
        said = lines(field)
        for name in models:
            told = [line for line in said if f"model={name} " in line and ("exit" in line or "fail" in line)]
            assert len(told) <= 3, f"besides the line that each request gets: {told}"
            assert "SIGABRT" in told[0]
            assert "stub: fatal error, as asked for" in told[0]

        time.sleep(scale.seconds(60.0, 0.7))
        assert lines(field) == said, "nobody asks it any more"
        assert field.starts() == 2


def test_case_012_who_asks_again_and_again_starts_it_three_times_and_no_more(
    tmp_path: Path, scale: Scale
) -> None:
    with Field(tmp_path, {"A": "--load 60 --die-at 0.1 --sig 6", "B": ""}) as field:
        assert field.chat("B").wrong() == ""
        calls = [field.chat("A") for _ in range(scale(500, 20))]

        assert [call.status for call in calls] == [500, 500, 503] + [503] * (len(calls) - 3)
        assert all("SIGABRT" in call.json["error"]["message"] for call in calls)
        assert all(int(call.headers["retry-after"]) >= 1 for call in calls[2:])
        assert field.starts("A") == 3
        assert field.chat("B").wrong() == ""
        field.until(lambda: field.log("process.started model=B"), "the log to be written")
        assert len(field.log("process.exited model=A")) == 3


@pytest.mark.lasts(seconds=20)
@pytest.mark.parametrize(
    "adopting",
    [
        pytest.param(False, id="as usual", marks=pytest.mark.soak(seconds=18)),
        pytest.param(True, id="as the first process"),
    ],
)
def test_case_040_no_crash_leaves_a_zombie(adopting: bool, tmp_path: Path, scale: Scale) -> None:
    # Its helper forks twice, as daemons do, and lives a little longer than the server.
    doubly = "sh -c '(setsid sleep 0.3 &) ; (true &) ; exec {}'"
    models = {
        "A": stub("--load 60 --die-at 0.05 --code 7", wrap=doubly, vram=False),
        "B": stub("--load 60 --die-at 0.05 --sig 11", vram=False),
        "C": stub(cmd="sh -c '(setsid sleep 0.1 &); exit 3' ${PORT}", vram=False),
    }
    command = (sys.executable, "-c", ADOPTING) if adopting else LLAMA_SWAP
    with Field(tmp_path, models, config=all_together(models), command=command) as field:
        for _ in range(scale(35, 3)):
            calls = [field.send(name) for name in models]
            assert [call.wait().status for call in calls] == [500] * 3

        field.until(lambda: not zombies_of(field.daemon.pid), "every zombie to be reaped", 10.0)
        field.until(lambda: len(field.daemon.children()) <= 1, "the end of every helper", 10.0)
