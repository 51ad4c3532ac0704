"""A configuration that is loaded again: a bad one changes nothing, whatever is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from llamaswap.reloading import Reloader
from llamaswap.service import CannotStart
from support.daemon import ServiceRig, write_config
from support.dispatch_rig import nothing_goes_wrong

GOOD = """
    routing: {scheduler: {use: serial}}
    models: {a: {cmd: "serve a ${env.MORE}", proxy: "http://127.0.0.1:9001"}}
"""


class Place:
    """A daemon and the file that it was started from."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path) -> None:
        self.folder = folder
        self.rig = ServiceRig(patch, GOOD.replace(" ${env.MORE}", ""), threads=False)
        self.reloader = Reloader(self.rig.service, folder / "config.yaml", None, {"MORE": "--more"})

    def reload(self, text: str | None = None) -> None:
        """Write the file, and have it loaded again."""
        if text is not None:
            write_config(self.folder, text)
        self.reloader.reload()

    @property
    def said(self) -> list[str]:
        """The lines of the log that are about reloading."""
        lines = self.rig.service.books.proxy.history().decode().splitlines()
        return [line for line in lines if " reload." in line or " service.reloaded" in line]


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Place]:
    """A started daemon; it is stopped in the end, and nothing went wrong."""
    place = Place(monkeypatch, tmp_path)
    with nothing_goes_wrong():
        place.rig.start()
        yield place
        place.rig.finish_stopping()


def test_the_file_as_it_is_now_takes_over_with_the_environment_of_the_start(place: Place) -> None:
    place.reload(GOOD)

    place.rig.chat("a")

    assert place.said == ["[INFO] service.reloaded models=1"]
    assert place.rig.running == ["a --more"]


def test_every_mistake_is_logged_and_nothing_changes(place: Place) -> None:
    upstream = place.rig.warm("a")
    asked = place.rig.chat("a")

    place.reload("""
        healthCheckTimeout: soon
        models: {a: {cmd: serve a, proxy: "http://127.0.0.1:9001", tttl: 3}}
    """)
    upstream.answers()

    assert asked.status == 200
    assert len(place.rig.children.started) == 1
    *mistakes, last = place.said
    assert len(mistakes) >= 1
    assert all(line.startswith("[WARN] reload.rejected ") for line in mistakes)
    assert all("config.yaml:" in line for line in mistakes)
    assert any("healthCheckTimeout" in line for line in mistakes)
    assert last == "[WARN] reload.changed_nothing"


def test_a_file_that_is_empty_may_be_half_written_and_is_put_off(place: Place) -> None:
    place.reload("")

    (said,) = place.said
    assert said.startswith("[WARN] reload.put_off why=")
    assert place.rig.chat("a").waits


def test_a_file_that_is_gone_changes_nothing(place: Place) -> None:
    place.reload()

    assert place.said[-1] == "[WARN] reload.changed_nothing"
    assert place.rig.chat("a").waits


def test_a_store_that_cannot_be_used_changes_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    before = place.rig.service.engine.states()
    monkeypatch.setattr("llamaswap.service._start", _fails)

    place.reload(f"""
        store: {{path: "{place.folder}/x.db"}}
        models: {{b: {{cmd: serve b, proxy: "http://127.0.0.1:9001"}}}}
    """)

    assert place.said[-2:] == [
        "[WARN] reload.rejected x.db: the disk is full",
        "[WARN] reload.changed_nothing",
    ]
    assert place.rig.service.engine.states() == before
    assert place.rig.chat("a").waits


def test_a_good_file_after_a_bad_one_takes_over(place: Place) -> None:
    place.reload("models: [")
    place.reload(GOOD)

    assert place.said[-1] == "[INFO] service.reloaded models=1"


def test_a_daemon_that_stops_or_has_stopped_is_left_alone(place: Place) -> None:
    place.rig.warm("a")
    place.rig.chat("a")
    place.rig.stop()

    place.reload(GOOD)
    assert place.rig.children.latest.signals == []
    place.rig.finish_stopping()
    place.reload(GOOD)

    assert place.said == []


def test_a_daemon_that_has_not_started_is_left_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place = Place(monkeypatch, tmp_path)

    place.reload(GOOD.replace("a:", "b:"))

    assert place.rig.service.engine.states() == {"a": "stopped"}
    place.rig.finish_stopping()


def test_a_port_that_a_running_model_has_is_kept_for_it(place: Place) -> None:
    """Without that, a model that was put before it in the file would take its port, and restart it."""
    ported = "models: {b: {cmd: 'serve b ${PORT}'}}\n"
    place.reload(ported)
    place.rig.chat("b")
    (before,) = place.rig.running

    place.reload("models: {a: {cmd: 'serve a ${PORT}'}, b: {cmd: 'serve b ${PORT}'}}\n")

    assert place.rig.children.latest.signals == []
    assert place.rig.service.ports["b"] == int(before.split()[-1])
    assert place.rig.service.ports["a"] != place.rig.service.ports["b"]


def _fails(_journal: object) -> None:
    raise CannotStart("x.db: the disk is full")
