"""Cases from the field: what a model's server says while it starts, and how long it may take."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from support.field import Field, stub
from support.field_call import Call
from support.field_hurry import all_together, with_health_checks
from support.field_scale import Scale
from support.field_watch import Watch
from support.real_events import EventSource

pytestmark = pytest.mark.integration

KEY = {"Authorization": "Bearer k"}


def agreement(field: Field, told: EventSource) -> Watch:
    """The events and the list of what runs never differ for as long as a second."""

    def look() -> str:
        said = {name: told.states(name)[-1:] for name in "AB"}
        now = {name: [field.running().get(name, "stopped")] for name in "AB"}
        return "" if said == now else f"told {said}, but it is {now}"

    return Watch(look, lasting=1.0)


def assert_told(told: EventSource, model: str, *states: str) -> None:
    """Assert that a model was said to be in these states, one after the other."""
    told.wait("modelStatus", lambda _: told.states(model) == list(states), f"{states} of {model}")


def test_case_009_each_state_is_told_once_and_who_comes_late_is_told_the_last(tmp_path: Path) -> None:
    models = {"A": stub("--term-lag 0.2", ttl=1, sendLoadingState=True), "B": stub()}
    with (
        Field(tmp_path, models) as field,
        EventSource(field.daemon.port) as early,
        agreement(field, early),
    ):
        told = field.send("A", stream=True)
        assert told.wait().wrong() == ""
        assert_told(early, "A", "stopped", "starting", "ready")
        with EventSource(field.daemon.port) as late:
            assert_told(late, "A", "ready")
            assert field.running() == {"A": "ready"}
            assert_told(late, "A", "ready", "stopping", "stopped")
        assert_told(early, "A", "stopped", "starting", "ready", "stopping", "stopped")
        assert field.running() == {}


@pytest.mark.soak(seconds=3)
def test_case_009_a_load_without_its_client_ends_as_ready_and_one_that_fails_as_stopped(
    tmp_path: Path,
) -> None:
    with (
        Field(tmp_path, {"A": "--load 1.5", "B": "--load 60 --die-at 0.3"}) as field,
        EventSource(field.daemon.port) as early,
        agreement(field, early),
    ):
        gone = field.send("A")
        field.until(lambda: field.running() == {"A": "starting"}, "the load")
        with EventSource(field.daemon.port) as late:
            gone.leave("rst")
            assert_told(late, "A", "starting", "ready")

        assert field.chat("B").status == 500
        assert_told(early, "B", "stopped", "starting", "stopped")
        assert field.running() == {}


# --- the health check --------------------------------------------------------------------------------------


def assert_refused_in_time(field: Field, call: Call) -> str:
    """Assert that a load was given up when its time was over; returns what was said about it."""
    limit = field.config["healthCheckTimeout"]
    assert call.wait().status == 500
    assert limit - 0.1 <= call.took < limit + 3.0
    message: str = call.json["error"]["message"]
    assert f"health check timed out after {limit}s" in message
    return message


@pytest.mark.lasts(seconds=20)
def test_case_014_029_a_load_that_took_too_long_leaves_nothing_and_the_next_one_is_new(
    tmp_path: Path, scale: Scale
) -> None:
    """llama-swap overwrites a model's `healthCheckTimeout` with the global one, and so do we, but say so."""
    late = stub("--load 25,0.1 --term-lag 0.3 --counter {folder}/starts", healthCheckTimeout=60)
    with Field(tmp_path, {"A": late}, **with_health_checks(scale, 2)) as field:
        (warning,) = field.log("models.A.healthCheckTimeout")
        assert "the global setting is used" in warning
        assert_refused_in_time(field, field.chat("A"))
        # It is still on its way out.
        assert field.chat("A").wrong() == ""
        (left,) = field.records("left")
        assert field.starts("A") == 2
        assert left["at"] < field.records("started")[1]["at"]


def assert_served_unasked(field: Field, model: str) -> None:
    """Assert that a model serves that isn't asked whether it is ready.

    It counts as ready before it listens, and until it does, 502 is llama-swap's answer.
    """
    deadline = time.monotonic() + 10.0
    while (answer := field.chat(model, headers=KEY)).status == 502:
        assert time.monotonic() < deadline
    assert answer.wrong() == ""


def test_case_020_021_whose_health_cannot_be_seen_is_refused_with_the_status_and_the_key_to_set(
    tmp_path: Path, scale: Scale
) -> None:
    codes = ("404", "401", "500", "302")
    models = {
        **{code: stub(f"--health-code {code}", vram=False) for code in codes},
        "elsewhere": stub("--health-code 404", checkEndpoint="/ready", vram=False),
        "unasked": stub("--health-code 404", checkEndpoint="none", vram=False),
        "locked": stub("--key k", vram=False),
        "open": stub("--key k --key-but-health", vram=False),
        "locked, unasked": stub("--key k", checkEndpoint="none", vram=False),
    }
    with Field(tmp_path, models, **with_health_checks(scale, 3, **all_together(models))) as field:
        assert field.chat("elsewhere").wrong() == ""
        assert field.chat("open", headers=KEY).wrong() == ""
        assert field.chat("open").status == 401
        assert_served_unasked(field, "unasked")
        assert_served_unasked(field, "locked, unasked")

        refused = {code: field.send(code) for code in codes}
        refused["401 without a key"] = field.send("locked", headers=KEY)
        for status, call in refused.items():
            message = assert_refused_in_time(field, call)
            assert f"checkEndpoint '/health' last answered with status {status[:3]}" in message
        assert field.starts() == len(models)


KNOWS_NAMES = """
import socket

ADDRESSES = {"six.test": ["::1"], "two.test": ["127.9.9.9", "127.0.0.1"]}
look_up = socket.getaddrinfo


def getaddrinfo(host, port, family=0, *more):
    found = []
    for address in ADDRESSES.get(host if isinstance(host, str) else host.decode(), [host]):
        try:
            found += look_up(address, port, family, *more)
        except socket.gaierror:
            continue
    return found


socket.getaddrinfo = getaddrinfo
from llamaswap.cli import main

main()
"""
"""A daemon whose resolver knows two more names: of an IPv6 address, and of two of which the first is dead."""


def test_a_server_is_found_at_whichever_address_of_its_name_it_listens(tmp_path: Path) -> None:
    models = {
        "six": stub("--host ::1", proxy="http://six.test:${PORT}"),
        "two": stub(proxy="http://two.test:${PORT}"),
    }
    with Field(tmp_path, models, command=(sys.executable, "-c", KNOWS_NAMES)) as field:
        for model in models:
            assert field.chat(model, 10.0).wrong() == ""
