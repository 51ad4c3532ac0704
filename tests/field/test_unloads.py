"""Cases from the field: how one model's server is brought to its end."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import pytest

from llamaswap.processes.server import SECOND_TRY_PAUSE
from support.field import Field, stub
from support.field_hurry import all_together
from support.field_scale import Scale
from support.processes_programs import is_alive
from support.real_daemon_processes import words_of

pytestmark = pytest.mark.integration


def kill_with_three_stuck(field: Field, method: str, unload: str) -> None:
    """Unload a deaf model while three requests are stuck in it, and see them fail with it."""
    before = len(field.records("arrived"))
    stuck = [field.send("A") for _ in range(3)]
    field.until(lambda: len(field.records("arrived")) == before + 3, "three stuck requests")
    (pid,) = field.processes("A")

    answer = field.visit(unload, method)
    answer.client.go()

    assert answer.wait(5.0).status == 200
    assert 0.9 <= answer.took < 3.0
    assert not is_alive(pid)
    assert field.running() == {}
    for call in stuck:
        assert call.wait(1.0).status == 502
        assert call.errors
        assert call.client.end is not None
        assert call.client.end - answer.client.sent < 3.0


def test_case_034_a_server_that_neither_answers_nor_heeds_a_signal_is_killed_and_its_requests_fail(
    tmp_path: Path, scale: Scale
) -> None:
    models = {"A": stub("--ignore-term --hang", unloadTimeout=1), "B": stub()}
    unloads = [("POST", "/api/models/unload/A"), ("GET", "/unload"), ("POST", "/api/models/unload")]
    with Field(tmp_path, models, config=all_together(models)) as field:
        for number, (method, unload) in enumerate(unloads if scale.soak else unloads[:1], 1):
            kill_with_three_stuck(field, method, unload)

            assert field.starts("A") == number
            assert len(field.records("term")) == number
        assert field.chat("B").wrong() == ""


# --- cmdStop -----------------------------------------------------------------------------------------------

NAMED = """\
#!/bin/sh
# What a container's runtime does: one name, one container; the name is free some time after it has ended.
mkdir "$1" || { echo "the name $1 is already in use" >&2; exit 125; }
shift
exec "$@"
"""

STOP_NAMED = """\
#!/bin/sh
kill "$3"
{background} sh -c 'while kill -0 "$1" 2>/dev/null; do sleep 0.02; done; sleep "$2"; rmdir "$0"' {arguments}
"""


def script(folder: Path, name: str, text: str) -> str:
    """A program to run; returns its path."""
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return shlex.quote(str(path))


@pytest.mark.soak(seconds=8)
def test_case_036_a_name_that_is_free_a_little_late_costs_a_second_try(tmp_path: Path) -> None:
    name = shlex.quote(str(tmp_path / "name-A"))
    # The runtime itself lives elsewhere: what it still has to do is none of the command's processes.
    later = STOP_NAMED.format(background="setsid", arguments='"$1" "$3" "$2" >/dev/null 2>&1 &')
    run, stop = script(tmp_path, "run", NAMED), script(tmp_path, "stop", later)
    named = stub(cmd=f"{run} {name} {{stub}}", cmdStop=f"{stop} {name} 2 ${{PID}}")
    with Field(tmp_path, {"A": named, "B": ""}) as field:
        assert field.chat("A").wrong() == ""
        field.unload()

        again = field.chat("A")

        assert again.wrong() == ""
        assert again.took >= SECOND_TRY_PAUSE
        assert field.starts("A") == 2
        assert field.chat("B").wrong() == ""
        field.until(lambda: field.log("process.ready model=B"), "the log to be written")
        assert len(field.log("already in use")) == 1, "one try failed, and was told of"


@pytest.mark.soak(seconds=3)
def test_case_036_the_next_start_waits_for_the_command_that_still_clears_away(tmp_path: Path) -> None:
    name = shlex.quote(str(tmp_path / "name-A"))
    now = STOP_NAMED.format(background="", arguments='"$1" "$3" "$2"')
    run, stop = script(tmp_path, "run", NAMED), script(tmp_path, "stop", now)
    named = stub(cmd=f"{run} {name} {{stub}}", cmdStop=f"{stop} {name} 0.4 ${{PID}}")
    with Field(tmp_path, {"A": named, "B": ""}) as field:
        assert field.chat("A").wrong() == ""
        unload = field.visit("/unload")
        unload.client.go()
        field.until(lambda: field.records("left", "A"), "its end")

        assert field.chat("A").wrong() == ""
        assert unload.wait().status == 200
        _, second = field.records("started", "A")
        (left,) = field.records("left", "A")
        assert second["at"] - left["at"] >= 0.4
        assert field.log("already in use") == []


COMMANDS = {
    "works": ("kill ${PID}", ""),
    "has quotes and macros": (
        """sh -c 'kill "$0"; echo "$1" >"$2"' ${PID} "the port is ${PORT}" {folder}/"a file\"""",
        "",
    ),
    "fails": ("sh -c 'exit 1'", "exited with code 1"),
    "hangs": ("sleep 1000", "was still running when the grace was over"),
    "is not there": ("/no/such/docker stop ${PID}", "no such file"),
}
"""How a model is stopped, and what is said about it."""


@pytest.mark.lasts(seconds=22)
def test_case_037_a_swap_goes_on_whatever_becomes_of_the_stop_command(tmp_path: Path, scale: Scale) -> None:
    models = {
        how: stub("", cmdStop=command.replace("{folder}", str(tmp_path)), unloadTimeout=1)
        for how, (command, _) in COMMANDS.items()
    }
    # A swap gives a model the time of a load, which is what a command that hangs takes.
    with Field(tmp_path, {**models, "B": stub()}, config={"healthCheckTimeout": 15}) as field:
        for how in COMMANDS:
            assert field.chat(how).wrong() == ""
            if how == "hangs" and not scale.soak:
                assert field.post(f"/api/models/unload/{how}").status == 200
            assert field.chat("B").wrong() == ""

            assert field.processes(how) == []
            assert len(field.records("term", how)) == 1, how
            assert len(field.records("left", how)) == 1, how
        field.until(lambda: len(field.log("process.ready model=B")) == len(COMMANDS), "the log to be written")
        for how, (_, complaint) in COMMANDS.items():
            told = field.log(f"process.stop_command_failed model={how} ")
            assert len(told) == bool(complaint)
            assert all(complaint in line for line in told)
        port = field.config["startPort"] + sorted(field.config["models"]).index("has quotes and macros")
        assert (tmp_path / "a file").read_text() == f"the port is {port}\n"
        assert not [pid for pid in field.daemon.children() if "1000" in words_of(pid)]


LAUNCHER = """\
#!/bin/bash
# Runs a server and two workers, hands SIGTERM on and waits for all of them.
trap 'kill -TERM $(jobs -p) 2>/dev/null' TERM
worker() {
    trap 'trap "" TERM; sleep "$LAG"; echo left >>"$LEFT"; exit' TERM
    while :; do sleep 0.05; done
}
"$@" & worker & worker &
while [ -n "$(jobs -pr)" ]; do wait; done
"""


def test_case_038_a_launcher_gets_all_of_its_models_own_time_to_stop(tmp_path: Path, scale: Scale) -> None:
    lag, grace = (12.0, 20) if scale.soak else (0.6, 2)
    launcher = script(tmp_path, "launch", LAUNCHER)
    slow = stub(f"--term-lag {lag}", cmd=f"{launcher} {{stub}}", unloadTimeout=grace)
    environ = {"LAG": str(lag), "LEFT": str(tmp_path / "left")}
    with Field(tmp_path, {"A": slow}, environ=environ) as field:
        assert field.chat("A").wrong() == ""
        unload = field.visit("/api/models/unload/A", "POST")
        began = time.monotonic()
        unload.client.go()
        field.until(lambda: field.running() == {"A": "stopping"}, "the stop")
        time.sleep(lag * 0.8)
        assert field.running() == {"A": "stopping"}
        assert field.processes("A"), "it isn't killed before its time"

        assert unload.wait(grace + 5.0).status == 200
        assert lag - 0.1 <= time.monotonic() - began < grace
        (left,) = field.records("left", "A")
        assert left["at"] - began >= lag - 0.1
        assert (tmp_path / "left").read_text() == "left\n" * 2
        assert field.processes("A") == []
        assert field.running() == {}
