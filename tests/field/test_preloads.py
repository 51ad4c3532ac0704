"""Cases from the field: models that are loaded at start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.field import Field, stub
from support.field_hurry import all_together
from support.field_scale import Scale

pytestmark = pytest.mark.integration

SERIAL = {"routing": {"scheduler": {"use": "serial"}}}
FIFO = {"routing": {"scheduler": {"use": "fifo"}}}


def preloading(*names: str, **more: Any) -> dict[str, Any]:
    """The keys of a configuration that loads these at start."""
    return {"hooks": {"on_startup": {"preload": list(names)}}, **more}


def preloaded(field: Field, model: str) -> bool:
    """Whether the preload of a model is over and went well."""
    return bool(field.log(f"preload.loaded model={model} "))


@pytest.mark.parametrize(
    "config",
    [pytest.param(SERIAL, id="serial"), pytest.param(FIFO, id="fifo", marks=pytest.mark.soak(seconds=8))],
)
def test_case_023_a_preload_never_ends_the_load_that_a_user_waits_for(
    config: dict[str, Any], tmp_path: Path, scale: Scale
) -> None:
    """Preloads queue at priority 0, like anybody; still nobody who waits loses a load to them."""
    load = scale.seconds(3.0, 1.5)
    models = dict.fromkeys("AB", f"--load {load}")
    with Field(tmp_path, models, config=preloading("A", "B", **config)) as field:
        field.until(lambda: field.running().get("A") == "starting", "the first preload")
        user = field.send("A", tag="user")

        assert user.wait().wrong() == ""
        field.until(lambda: preloaded(field, "B"), "the second preload", load + 10.0)

        assert field.running() == {"B": "ready"}
        assert [note["alias"] for note in field.records("started")] == ["A", "B"]
        (term,) = field.records("term", "A")
        (served,) = field.records("request", tag="user")
        assert served["at"] < term["at"]


@pytest.mark.soak(seconds=3)
def test_case_023_a_more_urgent_request_goes_before_the_preloads_that_wait(tmp_path: Path) -> None:
    models = {"A": "--load 2", "B": "", "C": ""}
    with Field(tmp_path, models, config=preloading("A", "B", **SERIAL)) as field:
        field.until(lambda: field.running().get("A") == "starting", "the first preload")
        user = field.send("C", priority="interactive")
        assert user.wait().wrong() == ""
        field.until(lambda: preloaded(field, "B"), "the second preload")

        assert [note["alias"] for note in field.records("started")] == ["A", "C", "B"]
        assert field.chat("B").wrong() == ""
        assert field.starts("B") == 1


def test_case_023_preloads_of_models_that_stay_together_load_one_after_the_other(tmp_path: Path) -> None:
    models = dict.fromkeys("ABC", stub("--load 0.3", vram=False))
    with Field(tmp_path, models, config=preloading("B", "A", "C", **all_together(models))) as field:
        field.until(lambda: all(preloaded(field, name) for name in "ABC"), "all preloads")

        assert field.running() == dict.fromkeys("ABC", "ready")
        started = field.records("started")
        assert [note["alias"] for note in started] == ["B", "A", "C"]
        greeted = {note["alias"]: note["at"] for note in field.records("request")}
        assert greeted["B"] <= started[1]["at"]
        assert greeted["A"] <= started[2]["at"]


def test_case_026_what_the_greeting_is_answered_does_not_matter(tmp_path: Path) -> None:
    """llama-swap preloads with a `GET /`, and so do we; a server without that page stays loaded."""
    known = "--only /v1/chat/completions,/v1/models --health-code 404"
    models = {"A": stub(known, checkEndpoint="/v1/models")}
    with Field(tmp_path, models, config=preloading("A")) as field:
        field.until(lambda: preloaded(field, "A"), "the preload")

        assert field.running() == {"A": "ready"}
        assert field.log("preload.failed") == []
        (greeting,) = [note for note in field.records("request") if note["target"] != "/v1/models"]
        assert (greeting["method"], greeting["target"]) == ("GET", "/")
        assert field.chat("A").wrong() == ""
        assert field.starts() == 1
