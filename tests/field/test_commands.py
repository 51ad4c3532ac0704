"""Cases from the field: what a configuration says of a command, and what its process gets of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.field import Field, Model, stub
from support.field_commands import QUOTING
from support.field_ports import free_ports
from support.real_daemon_talk import ask

pytestmark = pytest.mark.integration

TELLS_ITS_WORDS = """\
#!/bin/sh
# Write every word that came, each behind its length, and stay.
me=$0
for word; do printf '%s\\n' "$word" | wc -c; printf '%s\\n' "$word"; done >"$me.new"
mv "$me.new" "$me.words"
exec sleep 60
"""


def words_of(path: Path) -> list[str]:
    """The words that a process got."""
    left, found = path.read_bytes(), []
    while left:
        size, _, rest = left.partition(b"\n")
        found.append(rest[: int(size) - 1].decode())
        left = rest[int(size) :]
    return found


def program(folder: Path, number: int) -> Path:
    """A program of its own for each command."""
    path = folder / f"srv{number}"
    path.write_text(TELLS_ITS_WORDS)
    path.chmod(0o755)
    return path


def test_case_081_a_process_gets_the_words_that_the_configuration_means(tmp_path: Path) -> None:
    """The words are llama-swap's; `tests/config/test_field_cases.py` spells them in other ways of YAML."""
    models, first = {}, free_ports(len(QUOTING))
    for number, (text, _) in enumerate(QUOTING):
        cmd = f"{program(tmp_path, number)}{text.removeprefix('srv')}"
        proxy = f"http://127.0.0.1:{first + number}"
        models[f"m{number}"] = Model(keys={"cmd": cmd, "checkEndpoint": "none", "proxy": proxy})
    config = {
        "groups": {"all": {"swap": False, "members": list(models)}},
        "routing": {"scheduler": {"use": "fifo"}},
    }
    with Field(tmp_path, models, config=config) as field:
        field.together([field.prepare(model) for model in models])
        files = [tmp_path / f"srv{number}.words" for number in range(len(models))]
        field.until(lambda: all(path.exists() for path in files), "every process to tell its words")

        for path, (text, words) in zip(files, QUOTING, strict=True):
            assert words_of(path) == words[1:], text
        field.unload()


STOP = """\
#!/bin/sh
echo "$@" >{folder}/stopped
kill "$1"
"""

MACROS = {
    "seconds": 0.05,
    "home": "${env.FIELD_HOME}/models",
    "file": "${home}/${MODEL_ID}.gguf",
    "load": "--load ${seconds}",
    "where": "127.0.0.1:${PORT}",
    "threads": 7,
    "yes": True,
}


@pytest.fixture(scope="module")
def macros(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    """A model that uses macros wherever it can."""
    folder = tmp_path_factory.mktemp("macros")
    (folder / "stop").write_text(STOP.format(folder=folder))
    (folder / "stop").chmod(0o755)
    model = stub(
        "${load} --argv {folder}/argv",
        macros={"own": "${file}:${threads}"},
        env=["FILE=${own}", "WHERE=${where}"],
        cmdStop=f"{folder / 'stop'} ${{PID}} ${{PORT}} '${{own}}' ${{MODEL_ID}}",
        proxy="http://${where}",
        checkEndpoint="/health?at=${PORT}",
        aliases=["${MODEL_ID}-${threads}"],
        metadata={
            "n": "${threads}",
            "f": "${seconds}",
            "yes": "${yes}",
            "at": "${PORT}",
            "text": "${threads}x",
        },
        filters={"setParams": {"n": "${threads}", "f": "${seconds}", "yes": "${yes}", "name": "${own}"}},
        capabilities={"in": ["text"], "out": ["text"], "context": "${threads}", "tools": "${yes}"},
    )
    config = {"macros": MACROS}
    environ = {"FIELD_HOME": '/srv/it\'s "$HOME"'}
    with Field(folder, {"m": model}, config=config, environ=environ) as field:
        yield field


FILE = '/srv/it\'s "$HOME"/models/m.gguf:7'


def test_case_082_a_process_its_environment_and_its_end_see_what_macros_mean(macros: Field) -> None:
    assert macros.chat("m-7").wrong() == ""
    pid = macros.records("started", "m")[0]["pid"]
    environ = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    port = macros.get("/running").json["running"][0]["proxy"].rpartition(":")[2]

    assert f"FILE={FILE}" in environ
    assert f"WHERE=127.0.0.1:{port}" in environ
    (argv,) = map(json.loads, (macros.folder / "argv").read_text().splitlines())
    assert argv[argv.index("--load") + 1] == "0.05"
    assert argv[argv.index("--port") + 1] == port
    assert ask(macros.daemon.port, "POST", "/api/models/unload/m").status == 200
    stopped = (macros.folder / "stopped").read_text().split(" ")
    assert [stopped[0], stopped[1], stopped[-1]] == [str(pid), port, "m\n"]


def test_case_082_numbers_stay_numbers_on_their_way_to_clients_and_servers(macros: Field) -> None:
    (listed,) = macros.get("/v1/models").json["data"]
    meta = listed["meta"]["llamaswap"]
    port = meta["at"]

    assert isinstance(port, int)
    assert json.dumps([meta[name] for name in ("n", "f", "yes", "text")]) == '[7, 0.05, true, "7x"]'
    assert listed["context_length"] == 7
    assert listed["supported_parameters"] == ["tools", "tool_choice"]
    body = b'{"model":"m","keep":1e400}'
    macros.chat("m", body=body, tag="set")
    name = json.dumps(FILE)
    wanted = f'{{"model":"m","keep":1e400,"f":0.05,"n":7,"name":{name},"yes":true}}'
    (note,) = macros.records("request", tag="set")
    assert note["size_bytes"] == len(wanted)


def test_a_command_that_cannot_be_looked_at_is_refused_and_the_box_goes_on(tmp_path: Path) -> None:
    """Such as one in a folder that is closed to the daemon's user; here its name is too long."""
    far = f"/{'x' * 300}"
    models = {"A": stub(), "B": stub(cmd=f"{far} ${{PORT}}", vram=False), "C": stub(cmdStop=far)}
    with Field(tmp_path, models) as field:
        refused = field.chat("B", 10.0)

        assert refused.status == 500
        assert "failed to start command" in refused.json["error"]["message"]
        assert "File name too long" in refused.json["error"]["message"]
        assert field.running() == {}
        for model in ("C", "A"):  # C is stopped for A, without its command
            assert field.chat(model, 20.0).wrong() == ""
        assert len(field.log("process.stop_command_failed model=C")) == 1
