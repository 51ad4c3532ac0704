"""Cases from the field: loads that nobody waits for any more, and models that are asked for without end."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from support.field import Field
from support.field_call import Call
from support.field_scale import Scale

pytestmark = pytest.mark.integration


def wrong_choice(field: Field, loads: int = 1) -> Call:
    """A request whose model begins to load, for the nth time."""
    call = field.send("A")
    field.until(lambda: field.starts("A") == loads, "the load")
    return call


def one_after_the_other(field: Field, models: str) -> list[Call]:
    """Requests that wait in this order."""
    calls: list[Call] = []
    for name in models:
        calls.append(field.send(name))
        field.until(lambda: field.daemon.waiting() == len(calls), "it to wait")
    return calls


def test_case_024_a_load_that_its_client_has_left_ends_when_another_model_is_wanted(tmp_path: Path) -> None:
    """A model that still loads has no swap affinity: who came first goes first."""
    with Field(tmp_path, {"A": "--load 20,20,0.1 --counter {folder}/starts", "B": ""}) as field:
        wrong_choice(field).leave("rst").wait()
        right = field.chat("B")
        assert right.wrong() == ""
        assert right.took < 2.0
        assert field.running() == {"B": "ready"}

        wrong = wrong_choice(field, loads=2)
        others = one_after_the_other(field, "BA")
        wrong.leave("fin").wait()
        assert [call.wait(10.0).wrong() for call in others] == ["", ""]
        assert others[0].took < 2.0
        assert [note["alias"] for note in field.records("started")] == ["A", "B", "A", "B", "A"]


@pytest.mark.soak(seconds=3)
def test_case_024_a_load_that_another_client_waits_for_goes_on(tmp_path: Path) -> None:
    with Field(tmp_path, {"A": "--load 1", "B": ""}) as field:
        wrong = wrong_choice(field)
        others = one_after_the_other(field, "AB")
        wrong.leave("fin").wait()

        assert [call.wait(10.0).wrong() for call in others] == ["", ""]
        assert [note["alias"] for note in field.records("started")] == ["A", "B"]


@pytest.mark.soak(seconds=3)
def test_case_024_a_load_goes_on_while_nobody_wants_another_model(tmp_path: Path) -> None:
    with Field(tmp_path, {"A": "--load 0.7", "B": ""}) as field:
        wrong_choice(field).leave("fin").wait()
        field.until(lambda: field.running() == {"A": "ready"}, "it to be ready")

        assert field.chat("A").wrong() == ""
        assert field.starts() == 1


def hammer(field: Field, end: threading.Event, calls: list[Call]) -> None:
    """Ask for a model again as soon as it has answered."""
    while not end.is_set():
        calls.append(field.chat("A", stub={"first": 0.1}))


@pytest.mark.lasts(seconds=25)
def test_case_004_a_model_under_continuous_load_is_left_for_another_within_the_affinity_window(
    tmp_path: Path, scale: Scale
) -> None:
    # bonus times divisor: 10 s and 0.5 s
    divisor = 1.0 if scale.soak else 0.05
    settings = {"serial": {"agingDivisor": divisor, "swapAffinityBonus": 10}}
    config = {"routing": {"scheduler": {"use": "serial", "settings": settings}}}
    with Field(tmp_path, dict.fromkeys("AB", ""), config=config) as field:
        assert field.chat("A").wrong() == ""
        end, calls = threading.Event(), list[Call]()
        clients = [threading.Thread(target=hammer, args=(field, end, calls)) for _ in range(4)]
        for client in clients:
            client.start()
        field.until(lambda: len(calls) >= 4, "a steady load")

        other = field.chat("B")
        time.sleep(scale.seconds(10.0, 0.5))
        end.set()
        for client in clients:
            client.join(20.0)

        assert other.wrong() == ""
        (served,) = field.records("arrived", "B")
        # Each that is served has waited for the three before it; then the swap to B.
        assert served["at"] - other.client.sent < 10 * divisor + 4 * 0.1 + 2.0
        assert [call.wrong() for call in calls] == [""] * len(calls)
        assert max(call.client.sent for call in calls) > served["at"], "A's clients go on"
        assert field.starts("A") == 2
        assert field.starts("B") == 1
