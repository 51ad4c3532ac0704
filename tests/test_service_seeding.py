"""A daemon that starts knows what the one before it has measured."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from llamaswap.activity.journal import GATHER
from support.daemon import ServiceRig
from support.daemon_reloads import Rigs, fleet, started_rigs
from support.traces import dispatched, store


@pytest.fixture
def rigs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rigs]:
    """Makes started services; all are stopped in the end, and nothing went wrong."""
    with started_rigs(monkeypatch) as make:
        yield make


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A store of a daemon that has ended: a ran 10 s and had to be loaded, b ran 60 s and was there."""
    jobs = [dispatched(1000, "a", 14, waited=0, load=4), dispatched(1000, "b", 90, waited=30, load=0)]
    return store(tmp_path / "activity.db", jobs * 3)


def kept_in(path: Path, *models: str, more: str = "") -> str:
    """A configuration with its rows in a file."""
    text = f'store: {{path: "{path}"}}\n{more}'
    return fleet(more=text, **{name: f"serve {name}" for name in models})


def hears(rig: ServiceRig, known: Callable[[], Any]) -> None:
    """Wait for the store's thread."""
    rig.reactor.listen_until(known)


def test_who_waits_is_told_his_time_though_nothing_has_run_yet(rigs: Rigs, old: Path) -> None:
    rig = rigs(kept_in(old, "a", "b"), threads=True)
    estimates = rig.service.engine.estimates
    assert estimates.run("a") is None  # the start did not wait for it
    hears(rig, lambda: estimates.run("b"))

    rig.chat("a")
    rig.chat("b")

    queue = rig.ask("GET /api/queue").json
    (ticket,) = queue["tickets"]
    assert queue["jobs"][0]["remaining"]["p50_ms"] == pytest.approx(14_000, rel=0.03)
    assert ticket["eta"]["p50_ms"] == pytest.approx(14_000, rel=0.03)
    assert "estimates.seeded models=2 runs=6" in rig.service.books.proxy.history().decode()


def test_what_was_measured_before_the_past_was_read_counts_once(rigs: Rigs, old: Path) -> None:
    rig = rigs(kept_in(old, "a", "b"), threads=True)
    estimates = rig.service.engine.estimates

    rig.warm("a")
    assert [spread and spread.count for spread in (estimates.run("a"), estimates.load("a"))] == [1, 1]
    rig.reactor.advance(GATHER)
    hears(rig, lambda: estimates.run("b"))

    run, load = estimates.run("a"), estimates.load("a")
    assert run is not None
    assert load is not None
    assert (run.count, load.count) == (4, 4)
    rig.finish_stopping()
    with sqlite3.connect(old) as rows:
        assert rows.execute("SELECT count(*) FROM activity").fetchone() == (7,)
    rows.close()


def test_a_model_that_a_reload_brings_is_known_and_the_others_are_not_learned_again(
    rigs: Rigs, old: Path
) -> None:
    rig = rigs(kept_in(old, "a"), threads=True)
    estimates = rig.service.engine.estimates
    hears(rig, lambda: estimates.run("a"))

    rig.reload(kept_in(old, "a", "b"))
    hears(rig, lambda: estimates.run("b"))

    counts = [spread and spread.count for spread in (estimates.run("a"), estimates.run("b"))]
    assert counts == [3, 3]


def test_a_daemon_that_is_stopped_at_once_stops_in_order(rigs: Rigs, old: Path) -> None:
    rig = rigs(kept_in(old, "a", "b", more="logLevel: debug"), threads=True)

    rig.finish_stopping()

    assert rig.service.engine.estimates.run("a") is None
