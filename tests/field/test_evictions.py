"""Cases from the field: who may unload whom."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from support.field import Field, stub
from support.field_call import Call
from support.real_daemon import LLAMA_SWAP

pytestmark = [pytest.mark.integration, pytest.mark.soak(seconds=10)]

SIDE_BY_SIDE = stub(vram=False)


def evicted(field: Field, model: str, running: str) -> str:
    """What `llama-swap explain` says that loading a model stops."""
    path = field.folder / "explained.yaml"
    path.write_text(json.dumps(field.config))
    command = [*LLAMA_SWAP, "explain", str(path), model, "--running", running]
    told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    (line,) = [line for line in told.splitlines() if line.startswith("  with ")]
    return line.partition(" loading stops ")[2]


def refusal(call: Call) -> tuple[int, str, str]:
    """Status, code, and whom its words name as the holder of the box."""
    error = json.loads(call.body)["error"]
    return call.status, error["code"], error["message"].removeprefix("model ").partition(" is loaded")[0]


def test_case_058_a_group_that_is_not_exclusive_evicts_only_its_own(tmp_path: Path) -> None:
    """Three steps: two models that stay together, one of a group that swaps, and its neighbour.

    Every combination of two groups is held by the tests of the planner; this is what users see of it.
    """
    groups = {
        "together": {"swap": False, "exclusive": True, "members": ["C", "D"]},
        "in turn": {"swap": True, "exclusive": False, "members": ["A", "B"]},
    }
    models = dict.fromkeys("ABCD", SIDE_BY_SIDE)
    with Field(tmp_path, models, config={"groups": groups}) as field:
        loaded = []
        for model in "CDABC":
            assert field.chat(model).wrong() == ""
            loaded.append("".join(sorted(field.running())))
        assert loaded == ["C", "CD", "ACD", "BCD", "CD"]
        assert {note["alias"] for note in field.records("term")} == {"A", "B"}

        assert evicted(field, "A", "B,C,D") == "B"
        assert evicted(field, "C", "A,D") == "A"
        assert evicted(field, "D", "C") == "nothing"


@pytest.mark.parametrize("use", ["fifo", "serial"])
def test_case_056_a_protected_model_outlives_requests_for_others_and_can_be_unloaded(
    tmp_path: Path, use: str
) -> None:
    """Refuse instead of swap: who would evict it is told who holds the box, unless he says that he may."""
    models = {"A": stub(ttl=600, protected=True), "B": stub(), "C": stub()}
    with Field(tmp_path, models, config={"routing": {"scheduler": {"use": use}}}) as field:
        assert field.chat("A").wrong() == ""
        (pid,) = field.processes("A")

        held_off = (409, "model_protected", "A")
        assert [refusal(field.chat(model)) for model in "BC"] == [held_off] * 2
        working = field.send("A", stream=True, stub={"tokens": 20, "gap": 0.05})
        field.until(lambda: len(field.records("arrived", "A")) == 2, "A's second request")
        assert [refusal(field.chat(model)) for model in "BC"] == [held_off] * 2
        assert working.wait().wrong() == ""
        assert field.processes("A") == [pid]
        assert sorted(field.running()) == ["A"]
        assert field.starts() == 1

        assert field.chat("B", headers={"X-LlamaSwap-Evict": "Protected"}).wrong() == ""
        assert sorted(field.running()) == ["B"]
        assert field.chat("A").wrong() == ""  # nobody protects B
        assert refusal(field.chat("B"))[0] == 409

        assert field.post("/api/models/unload/A").status == 200
        assert field.chat("B").wrong() == ""
        assert sorted(field.running()) == ["B"]


def test_case_056_a_model_of_a_persistent_group_outlives_requests_for_others_and_can_be_unloaded(
    tmp_path: Path,
) -> None:
    """Where there is room for both, a persistent group protects a model, and nobody is refused."""
    groups = {"pinned": {"persistent": True, "swap": True, "exclusive": False, "members": ["A"]}}
    models = dict.fromkeys("ABC", SIDE_BY_SIDE)
    with Field(tmp_path, models, config={"groups": groups}) as field:
        assert field.chat("A").wrong() == ""
        (pid,) = field.processes("A")
        for model in "BCB":
            assert field.chat(model).wrong() == ""
        assert field.processes("A") == [pid]
        assert sorted(field.running()) == ["A", "B"]

        assert field.post("/api/models/unload/A").status == 200
        assert sorted(field.running()) == ["B"]
        assert field.chat("A").wrong() == ""
