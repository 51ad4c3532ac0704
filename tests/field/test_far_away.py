"""Cases from the field: peers, and answers that take their time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.field import Field, Model, stub
from support.field_peers import remote

pytestmark = pytest.mark.integration


def peer(name: str, url: str) -> dict[str, Any]:
    """A peer's entry; its one model is called far-..."""
    return {"proxy": url, "models": [f"far-{name}"]}


HURRY = {"responseHeader": 1}
PATIENT = {"responseHeader": 0}


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    """Two local models, one of them with a time limit, and four peers, two of them with one."""
    models = {"A": stub(), "hasty": stub("--load 0.5", timeouts=HURRY)}
    with ExitStack() as far:
        urls = far.enter_context(remote("P", "Q", "hasty-peer", "patient-peer"))
        peers = {name: peer(name, url) for name, url in urls.items()}
        peers["hasty-peer"] |= {"timeouts": HURRY}
        peers["patient-peer"] |= {"timeouts": PATIENT}
        with Field(tmp_path_factory.mktemp("far"), models, config={"peers": peers}) as field:
            yield field
            far.close()  # and with it the connections that are kept for their next requests


def test_case_060_peers_never_wait_for_the_gpu_nor_for_each_other(field: Field) -> None:
    before = field.metric("llamaswap_scheduler_dispatched_total")
    slow = [field.prepare("far-P", stream=number == 0, stub={"hang": True}) for number in range(3)]
    local = [field.prepare("A", stub={"hang": True}, tag="local"), field.prepare("A")]
    quick = [field.prepare("far-Q", stream=number == 0) for number in range(3)]
    field.together([*slow, *local])
    field.until(lambda: field.records("arrived", tag="local"), "its arrival")
    field.together(quick)

    assert [call.wait().wrong() for call in quick] == [""] * 3
    assert not any(call.over for call in (*slow, *local))
    assert field.metric("llamaswap_scheduler_dispatched_total") - before == 1
    for call in (*slow, local[0]):
        call.leave()
    assert local[1].wait().wrong() == ""


def test_case_067_a_time_limit_counts_neither_queue_nor_load_and_is_each_servers_own(field: Field) -> None:
    far = [field.send(f"far-{name}", stub={"first": 1.4}) for name in ("hasty-peer", "patient-peer", "P")]
    running = field.send("A", stub={"first": 0.5}, tag="running")
    field.until(lambda: field.records("arrived", tag="running"), "its arrival")
    late = field.send("hasty", stream=True, stub={"first": 0.5})
    assert running.wait().wrong() == ""
    assert late.wait().wrong() == ""
    assert late.took > 1.0

    too_slow = field.chat("hasty", stub={"hang": True})
    assert too_slow.status == 502
    assert 0.9 < too_slow.took < 2.0
    assert [call.wait().status for call in far] == [502, 200, 200]
    assert "peer proxy error" in far[0].json["error"]["message"]


@pytest.mark.soak(seconds=215)
def test_case_067_a_first_token_may_take_longer_than_two_minutes(tmp_path: Path) -> None:
    """Peers have a documented limit of 60 s unless they are given another; local models have none."""
    queue, load, first = 15.0, 65.0, 130.0
    models: dict[str, Model | str] = {"X": "", "A": f"--load {load}"}
    with ExitStack() as gone:
        urls = gone.enter_context(remote("given", "usual"))
        peers = {name: peer(name, url) for name, url in urls.items()}
        peers["given"] |= {"timeouts": {"responseHeader": 200}}
        with Field(tmp_path, models, config={"peers": peers, "healthCheckTimeout": 120}) as field:
            running = field.send("X", stub={"first": queue})
            field.until(lambda: field.records("arrived"), "its arrival")
            local = field.send("A", stub={"first": first}, stream=True)
            far = [field.send("far-given", stub={"first": first}, stream=stream) for stream in (False, True)]
            cut = field.send("far-usual", stub={"first": first})

            assert running.wait().wrong() == ""
            assert cut.wait(65.0).status == 502
            assert [call.wait(first + 30.0).wrong() for call in far] == ["", ""]
            assert local.wait(queue + load + first + 30.0).wrong() == ""
            assert local.took > queue + load + first
            gone.close()
