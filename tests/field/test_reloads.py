"""Cases from the field: another configuration while requests run and wait."""

from __future__ import annotations

import signal
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from support.field import Field, stub
from support.real_reload import WATCHING, changed, reload

pytestmark = pytest.mark.integration

SLOW = {"tokens": 24, "gap": 0.05}  # a stream of more than a second


def without(config: dict[str, Any], model: str) -> dict[str, Any]:
    """A configuration that has one model less."""
    new = deepcopy(config)
    del new["models"][model]
    return new


@pytest.mark.parametrize("use", ["serial", pytest.param("fifo", marks=pytest.mark.soak(seconds=4))])
def test_case_085_a_stream_outlives_every_edit_and_only_what_changed_starts_anew(
    use: str, tmp_path: Path
) -> None:
    config = {"routing": {"scheduler": {"use": use}}, "store": {"path": str(tmp_path / "rows.db")}}
    with Field(tmp_path, dict.fromkeys("ABC", ""), config=config) as field:
        stream = field.send("A", stream=True, stub=SLOW)
        field.until(lambda: stream.text, "its first words")
        (pid,) = field.processes("A")
        gone, stays = field.send("B"), field.send("C")
        field.until(lambda: field.daemon.waiting() == 2, "two to wait")

        new = changed(field.config, "C", words="--load 0.1")
        reload(field.daemon, tmp_path, new)
        new = changed(new, "A", ttl=60)
        reload(field.daemon, tmp_path, new)
        assert field.processes("A") == [pid]
        new = changed(new, "A", words="--load 0.05")
        reload(field.daemon, tmp_path, new)
        assert not gone.over
        assert field.daemon.waiting() == 2
        new = without(new, "B")
        reload(field.daemon, tmp_path, new)

        assert gone.wait(5.0).status == 404, "at once, though the box is taken"
        assert gone.json["error"]["message"]
        assert not stream.over
        assert field.processes("A") == [pid]
        assert (stream.wait().wrong(), stays.wait().wrong()) == ("", "")
        assert len(field.records("request", "A")) == 1

        assert field.chat("A").wrong() == ""
        assert {name: field.starts(name) for name in "ABC"} == {"A": 2, "B": 0, "C": 1}
        assert [row["resp_status_code"] for row in field.rows(4)].count(200) == 3
        assert field.log("service.reloaded")[0].count("models=3") == 1


def test_case_085_sighup_is_a_reload_also_of_the_same_file_and_while_a_model_loads(tmp_path: Path) -> None:
    with Field(tmp_path, {"A": stub("--load 0.7"), "B": ""}) as field:
        call = field.send("A", stream=True)
        field.until(lambda: field.starts("A"), "a start")

        for _ in range(5):
            reload(field.daemon, tmp_path, field.config, by=signal.SIGHUP)
        reload(field.daemon, tmp_path, changed(field.config, "B", ttl=9))

        assert call.wait().wrong() == ""
        assert field.starts() == 1
        assert field.log("SIGHUP") == []


def test_case_085_a_model_that_changes_while_it_loads_starts_once_more_and_answers(tmp_path: Path) -> None:
    with Field(tmp_path, {"A": stub("--load 0.7"), "B": ""}) as field:
        first = field.send("A")
        field.until(lambda: field.starts("A"), "a start")
        new = deepcopy(field.config)
        new["models"]["A"]["cmd"] = new["models"]["A"]["cmd"].replace("--load 0.7", "--load 0.1")

        reload(field.daemon, tmp_path, new)
        second = field.send("A")

        assert (first.wait().wrong(), second.wait().wrong()) == ("", "")
        assert field.starts("A") == 2
        assert len(field.processes("A")) == 1


@pytest.mark.soak(seconds=4)
def test_case_085_requests_that_wait_see_a_watched_file_come_and_go(tmp_path: Path) -> None:
    """A file that is away, empty or broken for a while is no configuration: nothing happens."""
    with Field(tmp_path, {"A": "", "B": ""}, command=WATCHING) as field:
        stream = field.send("A", stream=True, stub=SLOW)
        field.until(lambda: stream.text, "its first words")
        waiting = field.send("B")
        path = tmp_path / "config.yaml"
        text = path.read_text()

        path.unlink()
        path.write_text("")
        path.write_text(text[: len(text) // 2])
        field.until(lambda: field.log("reload.rejected") or stream.over, "it to be noticed")
        reload(field.daemon, tmp_path, changed(field.config, "A", ttl=30), by=0)

        assert (stream.wait().wrong(), waiting.wait().wrong()) == ("", "")
        assert (field.starts("A"), field.starts("B")) == (1, 1)
