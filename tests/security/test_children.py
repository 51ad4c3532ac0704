"""What a model's server is given of the daemon: three descriptors, and nothing to harm it with."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.processes.spawning import OURS_ALONE, environment
from support.real_daemon import started, stub_config

names = st.text(alphabet="ABCXYZ_", min_size=1, max_size=8)
environs = st.dictionaries(st.one_of(names, st.sampled_from(sorted(OURS_ALONE))), st.text(max_size=5))


@given(environs)
def test_what_systemd_tells_the_daemon_is_not_handed_down(inherited: dict[str, str]) -> None:
    handed_down = environment(inherited, ())

    assert not OURS_ALONE & handed_down.keys()
    assert handed_down == {name: value for name, value in inherited.items() if name not in OURS_ALONE}


def test_a_model_may_still_be_given_such_a_name_on_purpose() -> None:
    assert environment({"NOTIFY_SOCKET": "ours"}, ("NOTIFY_SOCKET=its own",)) == {"NOTIFY_SOCKET": "its own"}


LOOK = """
import json, os, sys
fds = {}
for fd in os.listdir("/proc/self/fd"):
    if os.path.exists("/proc/self/fd/" + fd):
        fds[fd] = os.readlink("/proc/self/fd/" + fd)
with open(sys.argv[1], "w") as file:
    json.dump({"env": dict(os.environ), "fds": fds, "leads": os.getsid(0) == os.getpid()}, file)
os.execv(sys.argv[2], sys.argv[2:])
"""

SYSTEMDS = {
    "NOTIFY_SOCKET": "@llamaswap-of-a-test",
    "WATCHDOG_USEC": "30000000",
    "WATCHDOG_PID": "1",
    "LISTEN_FDS": "1",
    "LISTEN_FDNAMES": "http",
    "LISTEN_PID": "1",
}


@pytest.mark.integration
def test_a_real_child_finds_nothing_of_the_daemons(tmp_path: Path) -> None:
    look = shlex.join([sys.executable, "-I", "-S", "-c", LOOK, str(tmp_path / "seen")])
    config = stub_config(tmp_path, "a", wrap=look.replace("{", "{{").replace("}", "}}") + " {}")

    with started(tmp_path, config, environ={**SYSTEMDS, "OF_THE_OPERATOR": "kept"}) as daemon:
        assert daemon.chat("a").status == 200
        seen = json.loads((tmp_path / "seen").read_text())

    assert not SYSTEMDS.keys() & seen["env"].keys()
    assert seen["env"]["OF_THE_OPERATOR"] == "kept"
    assert {fd: name for fd, name in seen["fds"].items() if not name.startswith("/proc/")}.keys() == {
        "0",
        "1",
        "2",
    }
    assert seen["fds"]["0"] == "/dev/null"
    assert seen["fds"]["1"] == seen["fds"]["2"]
    assert seen["leads"] is True
