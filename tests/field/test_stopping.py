"""Cases from the field: stopping, orphans, signals."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.field import Field, Model, stub
from support.field_call import Call
from support.field_scale import Scale
from support.real_daemon import LLAMA_SWAP
from support.real_daemon_processes import words_of

pytestmark = pytest.mark.integration

WRAPPERS = {
    "no exec": "bash -c '{}; true'",
    "two levels": "bash -c 'bash -c \"{}; true\"; true'",
    "in the background": "bash -c '{} & wait'",
    "in a session of its own": "bash -c 'setsid {} & wait'",
}

IN_A_HURRY = """
import llamaswap.service
from llamaswap.cli import main

llamaswap.service.STOP_BUDGET = 1.0
llamaswap.service.LEAST_CHILD_GRACE = 0.5
main()
"""


LEADER = """
import os, sys

os.setsid()
os.open(sys.argv[1], os.O_RDWR)  # the first terminal that a session's leader opens is its own
os.execv(sys.argv[2], sys.argv[2:])
"""


def at_its_end(scale: Scale, *before: str) -> dict[str, Any]:
    """How the daemon is run, and how long it may take to stop: in a hurry unless this is a soak.

    Args:
        before: words before its own.
    """
    command = LLAMA_SWAP if scale.soak else (sys.executable, "-c", IN_A_HURRY)
    return {"command": (*before, *command), "within": 45.0 if scale.soak else 8.0}


def assert_port_is_free(field: Field) -> None:
    """Assert that nobody listens where the first model did."""
    socket.create_server(("127.0.0.1", field.config["startPort"])).close()


@pytest.mark.lasts(seconds=32)
@pytest.mark.parametrize("deaf", [False, True], ids=["heeds TERM", "ignores TERM"])
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_case_031_a_server_below_a_shell_that_does_not_exec_is_stopped_too(
    wrapper: str, deaf: bool, tmp_path: Path, scale: Scale
) -> None:
    wrapped = stub("--ignore-term" if deaf else "", wrap=WRAPPERS[wrapper], unloadTimeout=1)
    with Field(tmp_path, {"A": wrapped, "B": "--fork --fork"}, **at_its_end(scale)) as field:
        assert field.chat("A").wrong() == ""
        assert len(field.processes("A")) > 1, "there is a shell around it"
        began = time.monotonic()
        field.unload()
        assert time.monotonic() - began < 3.0
        assert field.records("term", "A")
        assert_port_is_free(field)

        assert field.chat("A").wrong() == ""
        if scale.soak or not deaf:  # an eviction is as patient as a load, which makes it long
            assert field.chat("B").wrong() == ""
            assert field.processes("A") == []
            assert_port_is_free(field)
            assert field.chat("A").wrong() == ""
            assert field.processes("B") == []
        field.stop()
        assert_port_is_free(field)


def test_a_server_in_a_session_of_its_own_ends_with_the_shell_that_started_it_and_with_the_daemon(
    tmp_path: Path,
) -> None:
    # By the time it is ready somebody has looked who belongs to whom.
    server = stub("--load 1.6", wrap=WRAPPERS["in a session of its own"])
    with Field(tmp_path, {"A": server}) as field:
        assert field.chat("A").wrong() == ""
        (shell,) = (pid for pid in field.processes("A") if words_of(pid)[0].endswith("bash"))
        os.kill(shell, signal.SIGKILL)
        field.until(lambda: not field.processes(), "the end of its server", 5.0)

        assert field.chat("A").wrong() == ""
        field.daemon.process.kill()

        field.until(lambda: not field.processes(), "the end of every server", 5.0)
        field.daemon.process.wait(5)


# --- the end of the daemon ---------------------------------------------------------------------------------


def crowd() -> dict[str, Model]:
    """Three that run side by side: one loads for long, one answers for long, one ignores SIGTERM."""
    long = "--tokens 2000 --gap 0.05"
    return {
        "loading": stub("--load 60", vram=False),
        "streaming": stub(long, vram=False),
        "deaf": stub(f"--ignore-term {long}", wrap=WRAPPERS["no exec"], vram=False),
    }


def side_by_side(tmp_path: Path, scale: Scale, *before: str) -> Field:
    """The daemon of that crowd."""
    config = {
        "groups": {"all": {"swap": False, "members": ["loading", "streaming", "deaf"]}},
        "routing": {"scheduler": {"use": "fifo"}},
    }
    return Field(tmp_path, crowd(), config=config, **at_its_end(scale, *before))


def set_to_work(field: Field) -> list[Call]:
    """One request for each, and all under way."""
    calls = [field.send(name, stream=True) for name in ("loading", "streaming", "deaf")]
    field.until(lambda: calls[1].text and calls[2].text, "two streams")
    field.until(lambda: field.running().get("loading") == "starting", "the third to load")
    return calls


def assert_cut_off(calls: list[Call]) -> None:
    """Assert that each was told that there is no more, and none was given a clean end."""
    for call in calls:
        call.wait(10.0)
        assert call.errors or not call.complete
        assert "[DONE]" not in call.body.decode()


@pytest.mark.lasts(seconds=34)
@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGINT], [signal.SIGINT] * 2])
def test_case_032_a_daemon_that_is_asked_to_end_leaves_no_server_behind(
    signals: list[signal.Signals], tmp_path: Path, scale: Scale
) -> None:
    with side_by_side(tmp_path, scale) as field:
        calls = set_to_work(field)
        for number in signals[:-1]:
            field.daemon.process.send_signal(number)
            field.until(lambda: field.log("service.stopping"), "the stop to begin")

        field.stop(signals[-1])

        assert_cut_off(calls)
        assert field.processes() == []


def test_a_job_whose_load_waits_for_another_server_to_end_is_answered_before_the_daemon_ends(
    tmp_path: Path,
) -> None:
    with Field(tmp_path, {"A": "--term-lag 1", "B": ""}) as field:
        assert field.chat("A").wrong() == ""
        job = field.send("B")
        field.until(lambda: field.running().get("A") == "stopping", "room to be made for B")

        field.stop()

        assert job.wait(1.0).wrong() == ""


def test_case_032_a_daemon_that_is_killed_takes_its_servers_along(tmp_path: Path, scale: Scale) -> None:
    with side_by_side(tmp_path, scale) as field:
        calls = set_to_work(field)

        field.daemon.process.kill()

        field.until(lambda: not field.processes(), "the end of every server", 5.0)
        field.until(lambda: not field.daemon.children(), "the end of every helper", 5.0)
        assert_cut_off(calls)
        field.daemon.process.wait(5)


@pytest.mark.lasts(seconds=34)
def test_case_032_a_daemon_whose_terminal_is_closed_ends_with_its_servers(
    tmp_path: Path, scale: Scale
) -> None:
    master, slave = pty.openpty()
    with side_by_side(tmp_path, scale, sys.executable, "-c", LEADER, os.ttyname(slave)) as field:
        calls = set_to_work(field)

        os.close(slave)
        os.close(master)

        field.daemon.process.wait(45.0 if scale.soak else 8.0)
        field.daemon.assert_alone()
        assert_cut_off(calls)


def test_case_032_a_hang_up_with_a_living_terminal_or_under_nohup_reloads(tmp_path: Path) -> None:
    nohup = shutil.which("nohup")
    assert nohup is not None
    master, slave = pty.openpty()
    leader = (sys.executable, "-c", LEADER, os.ttyname(slave), nohup)
    with Field(tmp_path, {"A": ""}, command=(*leader, *LLAMA_SWAP)) as field:
        field.daemon.process.send_signal(signal.SIGHUP)
        field.until(lambda: len(field.log("service.reloaded")) == 1, "the reload")

        os.close(slave)
        os.close(master)

        field.until(lambda: len(field.log("service.reloaded")) == 2, "another one")
        assert field.chat("A").wrong() == ""
