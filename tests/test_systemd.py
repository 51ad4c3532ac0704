"""The systemd units are valid, fit the daemon and each other, and shut in what can be shut in."""

from __future__ import annotations

import shutil
import subprocess
from io import StringIO
from pathlib import Path

import pytest

from llamaswap import tap
from llamaswap.activity.journal import PATIENCE
from llamaswap.listening import BACKLOG, DEFAULT_ADDRESS
from llamaswap.processes.child import BACKSTOP, REAPING
from llamaswap.service import LAST_WORDS, LEAST_CHILD_GRACE, STOP_BUDGET
from llamaswap.tools.commands import run
from support.documents import ROOT, read
from twisted.plugins import llamaswap_plugin

UNIT = "systemd/llamaswap.service"
SOCKET = "systemd/llamaswap.socket"
SYSUSERS = "etc/llamaswap.sysusers"
PROGRAM = "/opt/llamaswap/bin/twistd"
LOOK = "/opt/llamaswap/bin/llama-swap"
LARGEST_EXPOSURE = "20"  # tenths, as `--threshold` takes them; 0 is perfect, 100 is open

Settings = dict[str, list[str]]


def settings(section: str, unit: str = UNIT) -> Settings:
    """Return the values of each key of one section, in their order."""
    found: Settings = {}
    here = ""
    for line in read(unit).splitlines():
        if line.startswith("["):
            here = line.strip("[]")
        elif "=" in line and not line.startswith("#") and here == section:
            key, _, value = line.partition("=")
            found.setdefault(key, []).append(value)
    return found


def the(key: str) -> str:
    """Return the one value of a key of the service."""
    (value,) = settings("Service")[key]
    return value


def runnable_copy(folder: Path) -> Path:
    """Write the unit with a program that exists everywhere in place of ours."""
    assert read(UNIT).count(PROGRAM) == 1
    assert read(UNIT).count(LOOK) == 1
    (folder / "llamaswap.socket").write_text(read(SOCKET), "utf-8")
    copy = folder / "llamaswap.service"
    copy.write_text(read(UNIT).replace(PROGRAM, "/bin/true").replace(LOOK, "/bin/true"), "utf-8")
    return copy


def analyze(*words: str) -> subprocess.CompletedProcess[str]:
    """Run systemd-analyze; skips where there is none that can do this."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("there is no systemd-analyze here")
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=60, check=False)
    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze is too old")
    return done


@pytest.mark.parametrize("unit", ["llamaswap.service", "llamaswap.socket"])
def test_systemd_finds_nothing_to_complain_about(unit: str, tmp_path: Path) -> None:
    done = analyze("verify", "--man=no", str(runnable_copy(tmp_path).with_name(unit)))

    assert (done.returncode, done.stderr) == (0, "")


def test_systemd_would_complain_about_a_misspelt_setting(tmp_path: Path) -> None:
    copy = runnable_copy(tmp_path)
    copy.write_text(copy.read_text("utf-8").replace("KillMode", "KilMode"), "utf-8")

    assert "KilMode" in analyze("verify", "--man=no", str(copy)).stderr


def test_the_service_is_exposed_as_little_as_a_network_service_with_gpus_can_be(tmp_path: Path) -> None:
    copy = str(runnable_copy(tmp_path))
    done = analyze("security", "--offline=true", f"--threshold={LARGEST_EXPOSURE}", copy)

    assert done.returncode == 0, done.stdout[-200:]


def test_its_command_line_is_one_that_twistd_takes(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("models: {a: {cmd: 'server ${PORT}'}}\n", "utf-8")
    program, *words = the("ExecStart").split()
    environment = dict(pair.split("=", 1) for pair in the("Environment").split())
    assert program == PROGRAM
    own, ours = words[: words.index("llamaswap")], words[words.index("llamaswap") + 1 :]
    places = {"%E/llamaswap/config.yaml": str(config), "${LLAMASWAP_LISTEN}": environment["LLAMASWAP_LISTEN"]}

    options = tap.Options()
    ours = [places.get(word, word) for word in ours]
    options.parseOptions(ours)  # type: ignore[no-untyped-call]  # Twisted's Options are untyped

    assert own == ["--nodaemon", "--reactor=llamaswap", "--pidfile="]
    assert llamaswap_plugin.llamaswap.tapname == "llamaswap"
    assert options.addresses == [], "what systemd has opened goes before the default"
    assert options.plan is not None
    assert options.plan.endpoints == tap.endpoints([DEFAULT_ADDRESS])
    assert list(options.plan.config.models) == ["a"]


def test_the_socket_unit_holds_the_address_that_the_service_has_by_default() -> None:
    assert settings("Socket", SOCKET)["ListenStream"] == [DEFAULT_ADDRESS]
    assert settings("Socket", SOCKET)["Backlog"] == [str(BACKLOG)]
    assert "Accept" not in settings("Socket", SOCKET)
    assert settings("Install", SOCKET)["WantedBy"] == ["sockets.target"]


def test_a_daemon_that_is_stuck_is_started_again_and_one_that_reloads_a_large_file_is_not() -> None:
    """A reload holds the reactor for some seconds where there are thousands of models."""
    assert 30.0 <= float(the("WatchdogSec")) <= 120.0
    assert the("Restart") == "on-failure", "which a missed sign of life counts as"
    assert the("NotifyAccess") == "main"


def test_systemd_waits_longer_than_a_stop_can_take() -> None:
    longest = LAST_WORDS + STOP_BUDGET + LEAST_CHILD_GRACE + BACKSTOP + REAPING + PATIENCE

    assert float(the("TimeoutStopSec")) > longest


def test_only_the_daemon_is_told_to_stop_and_nothing_survives_it() -> None:
    assert the("KillMode") == "mixed"
    assert "SendSIGKILL" not in settings("Service")


def test_it_is_started_again_when_it_fails_but_not_for_ever() -> None:
    assert the("Restart") == "on-failure"
    assert settings("Unit")["StartLimitBurst"] == ["5"]


def test_it_says_itself_when_it_is_ready_also_to_a_systemd_that_knows_no_notify_reload() -> None:
    assert the("Type") == "notify"


def test_gpus_can_be_reached() -> None:
    allowed = {value.split()[0] for value in settings("Service")["DeviceAllow"]}

    assert allowed == {"char-nvidia*", "char-drm", "char-kfd"}
    for closed in ("PrivateDevices", "MemoryDenyWriteExecute", "ProcSubset", "PrivateUsers"):
        assert closed not in settings("Service"), f"{closed} would keep GPU drivers from working"


def test_a_reload_looks_at_the_configuration_before_it_tells_the_daemon(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    look, tell = settings("Service")["ExecReload"]
    program, *words = look.replace("%E/llamaswap/config.yaml", str(config)).split()
    assert program == LOOK
    out = StringIO()

    config.write_text("models: {a: {cmd: 'server ${PORT}'}}\n", "utf-8")
    assert run(words, out, out, {}) == 0
    config.write_text("models: {a: {cmd: 'server ${PORT}', ttl: soon}}\n", "utf-8")
    assert run(words, out, out, {}) == 1

    assert tell == "/bin/kill -HUP $MAINPID"


def test_the_user_of_the_service_is_the_one_that_is_made() -> None:
    made = [line.split() for line in read(SYSUSERS).splitlines() if line.startswith(("u ", "m "))]

    assert [words[1] for words in made if words[0] == "u"] == [the("User")] == [the("Group")]
    assert {words[2] for words in made if words[0] == "m"} == {"video", "render"}
    assert made[0][-1] == f"/var/lib/{the('StateDirectory')}"


def test_systemd_can_make_the_user(tmp_path: Path) -> None:
    program = shutil.which("systemd-sysusers")
    if program is None:
        pytest.skip("there is no systemd-sysusers here")
    words = [program, "--dry-run", f"--root={tmp_path}", str(ROOT / SYSUSERS)]

    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)

    if "unrecognized option" in done.stderr:
        pytest.skip("this systemd-sysusers is too old")
    assert done.returncode == 0, done.stderr
