"""Cases from the field: how long a model stays that nobody asks for."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest

from support.field import Field, stub
from support.field_call import Call
from support.field_hurry import all_together
from support.field_scale import Scale
from support.field_watch import nobody_waits_for_nothing

pytestmark = pytest.mark.integration

SEED = 20261129
SOAK = 25.0  # seconds


def assert_unloaded_after(field: Field, model: str, end: float, ttl: float) -> None:
    """Assert that a model is asked to go so many seconds after a moment."""
    field.until(lambda: not field.processes(model), "the unload", ttl + 5.0)
    (term,) = field.records("term", model)
    assert ttl - 0.2 <= term["at"] - end < ttl + 1.0


def end_of(call: Call) -> float:
    """When a request was over."""
    assert call.client.end is not None
    return call.client.end


@pytest.mark.lasts(seconds=22)
def test_case_017_018_time_to_live_counts_from_the_end_of_a_load_and_of_the_last_answer(
    tmp_path: Path, scale: Scale
) -> None:
    load, ttl, stream, pause = (6.0, 3, 10.0, 2.0) if scale.soak else (1.2, 1, 1.5, 0.6)
    slow = stub(f"--load {load}", ttl=ttl, vram=False)
    models = {"kept": slow, "left": slow, "long": stub("", ttl=ttl, vram=False)}
    with Field(tmp_path, models, config=all_together(models)) as field:
        kept, left = field.send("kept"), field.send("left")
        long = field.send("long", stream=True, stub={"tokens": 20, "gap": stream / 19})
        field.until(lambda: field.records("started", "left"), "the start")
        left.leave("fin")

        assert kept.wait().wrong() == ""
        assert kept.took >= load
        field.until(lambda: field.running().get("left") == "ready", "it to be ready, too", 5.0)
        ready = time.monotonic()
        assert long.wait().wrong() == ""
        assert long.took >= stream
        time.sleep(pause)
        following = field.chat("long")
        assert following.wrong() == ""

        assert_unloaded_after(field, "kept", end_of(kept), ttl)
        assert_unloaded_after(field, "left", ready, ttl)
        assert_unloaded_after(field, "long", end_of(following), ttl)
        assert field.starts() == len(models)


def ping(field: Field, model: str, end: float, dice: random.Random, calls: list[Call]) -> None:
    """Ask a model again and again, each time at about the moment at which it is unloaded."""
    while time.monotonic() < end:
        calls.append(field.chat(model))
        time.sleep(1.0 + dice.uniform(-0.1, 0.3))


@pytest.mark.soak(seconds=SOAK + 5)
def test_case_011_pings_that_meet_every_unload_do_not_pile_up(tmp_path: Path) -> None:
    models = dict.fromkeys("ABC", stub("--term-lag 0.1", ttl=1, vram=False))
    with (
        Field(tmp_path, models, config=all_together(models)) as field,
        nobody_waits_for_nothing(field),
    ):
        calls: dict[str, list[Call]] = {name: [] for name in models}
        end = time.monotonic() + SOAK
        pingers = [
            threading.Thread(target=ping, args=(field, name, end, random.Random(SEED + number), calls[name]))
            for number, name in enumerate(models)
        ]
        for pinger in pingers:
            pinger.start()
        for pinger in pingers:
            pinger.join(SOAK + 60.0)
            assert not pinger.is_alive(), "it got no answer"

        made = [call for name in models for call in calls[name]]
        assert [call.wrong() for call in made] == [""] * len(made)
        assert [note for note in field.records("arrived") if note["stopping"]] == []
        assert len(made) > field.starts() > len(models), "some met the unload, some came before"
        late = [call.took for name in models for call in calls[name][len(calls[name]) // 2 :]]
        assert max(late) < 5.0


def test_a_model_does_not_stay_for_requests_that_are_held_up(tmp_path: Path) -> None:
    with Field(tmp_path, {"A": stub(ttl=1)}) as field:
        assert field.post("/api/scheduler/pause?band=batch").status == 200
        assert field.chat("A").ok

        held_up = field.send("A", priority="batch")
        field.until(lambda: field.daemon.waiting() == 1, "it to wait")
        field.until(lambda: not field.processes("A"), "the unload", 6.0)

        assert not held_up.over
        assert field.post("/api/scheduler/resume").status == 200
        assert held_up.wait().wrong() == ""
        assert field.starts("A") == 2
