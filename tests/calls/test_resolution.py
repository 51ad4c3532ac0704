"""What a requested name means."""

from __future__ import annotations

import time

import pytest

from llamaswap.calls.resolution import PeerNames
from llamaswap.calls.selectors import NoTarget
from llamaswap.config.model import PeerConfig
from llamaswap.errors import ModelNotFound, NoModel
from support.calls_names import Names, said


@pytest.mark.parametrize(
    ("name", "meaning"),
    [
        ("m1", "m1"),
        ("nick", "m1"),
        ("m2:hot", "m2"),
        ("org/m", "org/m"),
        ("123", "123"),
        ("shared", "m1"),  # an alias goes before a peer's bare name
        ("p1/shared", "p1:shared"),
        ("remote/x", "p1:remote/x"),
        ("p1/remote/x", "p1:remote/x"),
        ("only1", "p1:only1"),  # listed twice by one peer
        ("p1/only1", "p1:only1"),  # a qualified name goes before another peer's bare one
        ("p2/p1/only1", "p2:p1/only1"),
        ("p2/both", "p2:both"),
        ("both", None),  # two peers offer it
        ("M1", None),
        (" m1", None),
        ("nobody", None),
        ("p1", None),
    ],
)
def test_ids_go_before_aliases_and_those_before_peers(name: str, meaning: str | None) -> None:
    resolved = Names().directory.resolve(name)
    assert said(resolved.destination) == meaning
    assert (resolved.requested, resolved.selector) == (name, "")


def test_an_empty_name_is_no_model() -> None:
    with pytest.raises(NoModel):
        Names().directory.resolve("")


@pytest.mark.parametrize(
    ("name", "requested", "meaning", "selector"),
    [
        ("public", "m1", "m1", ""),
        ("m2", "m1", "m1", ""),  # a pin goes before the model of this name
        ("nick", "m2", "m2", ""),
        ("chain", "m2", "m2", ""),  # and only once: m2 is pinned, too
        ("hot", "m2:hot", "m2", ""),
        ("tosel", "m2", "m2", "sel"),
        ("away", "p1/remote/x", "p1:remote/x", ""),
        ("m1", "m1", "m1", ""),
        ("only1", "only1", "p1:only1", ""),
    ],
)
def test_a_pin_goes_first_and_once(name: str, requested: str, meaning: str, selector: str) -> None:
    names = Names()
    names.profile.switch("day")

    resolved = names.directory.resolve(name)

    assert (resolved.requested, said(resolved.destination), resolved.selector) == (
        requested,
        meaning,
        selector,
    )


def test_a_disabled_pin_is_no_model() -> None:
    names = Names()
    assert names.directory.resolve("off").destination is None
    names.profile.switch("day")
    with pytest.raises(NoModel):
        names.directory.resolve("off")


@pytest.mark.parametrize(
    ("name", "requested", "meaning"),
    [
        ("sel", "m2", "m2"),
        ("sel1", "m2:hot", "m2"),  # the target's text counts, and a selector goes before a peer's bare name
        ("far", "p2/filt", "p2:filt"),
        ("warm", "m1", "m1"),
        ("spill", "nick", "m1"),
    ],
)
def test_a_selector_stands_for_its_target(name: str, requested: str, meaning: str) -> None:
    resolved = Names().directory.resolve(name)
    assert (resolved.requested, said(resolved.destination), resolved.selector) == (requested, meaning, name)


def test_selectors_see_the_states_of_the_models_behind_aliases() -> None:
    names = Names()
    names.states = {"m2": "ready"}
    assert names.directory.resolve("warm").requested == "m2"

    names.states = {"m1": "stopping"}
    held = names.directory.resolve("spill")
    assert held.requested == "p2/only2"
    held.reservation.release()


def test_a_reservation_is_held_until_it_is_released() -> None:
    names = Names()
    names.states = {"m1": "ready"}
    first = names.directory.resolve("spill")
    assert names.directory.resolve("spill").requested == "p2/only2"
    first.reservation.release()
    assert names.directory.resolve("spill").requested == "nick"


def test_a_selector_without_targets_left_is_refused() -> None:
    names = Names({"m1": "stopping", "m2": "shutdown"})
    with pytest.raises(NoTarget):
        names.directory.resolve("locals")


@pytest.mark.parametrize(
    ("path", "name", "meaning"),
    [
        ("m1", "m1", "m1"),
        ("m1/", "m1", "m1"),
        ("m1/v1/x", "m1", "m1"),
        ("nick/x", "nick", "m1"),
        ("org/x", "org", "org"),
        ("org/m/v1/x", "org/m", "org/m"),
        ("org/mm/x", "org", "org"),
        ("p1/remote/x/v1", "p1/remote/x", "p1:remote/x"),
        ("remote/x/v1", "remote/x", "p1:remote/x"),
        ("only2/foo.js", "only2", "p2:only2"),
        ("sel1/x", "sel1", "p1:sel1"),  # selectors do not count, so the peer's name does
        ("m2:hot/x", "m2:hot", "m2"),
    ],
)
def test_a_path_begins_with_the_longest_name(path: str, name: str, meaning: str) -> None:
    placed = Names().directory.resolve_path(path)
    assert (placed.name, placed.requested, said(placed.destination)) == (name, name, meaning)


@pytest.mark.parametrize("path", ["", "/", "missing/v1", "M1/x", "m1x", "both/x", "sel/x", "x/m1"])
def test_a_path_that_begins_with_no_name_is_not_found(path: str) -> None:
    with pytest.raises(ModelNotFound):
        Names().directory.resolve_path(path)


@pytest.mark.parametrize(
    ("path", "name", "requested", "meaning"),
    [
        ("public/x", "public", "m1", "m1"),
        ("public", "public", "m1", "m1"),
        ("public/long/x", "public/long", "m2", "m2"),
        ("m2/x", "m2", "m1", "m1"),
        ("away/v1", "away", "p1/remote/x", "p1:remote/x"),
        ("m1/x", "m1", "m1", "m1"),
        ("org/m/x", "org", "m1", "m1"),
    ],
)
def test_a_pin_decides_over_a_path(path: str, name: str, requested: str, meaning: str) -> None:
    names = Names()
    names.profile.switch("day")
    placed = names.directory.resolve_path(path)
    assert (placed.name, placed.requested, said(placed.destination)) == (name, requested, meaning)


@pytest.mark.parametrize("path", ["off/x", "tosel/x"])
def test_a_pin_that_is_off_or_leads_to_a_selector_is_not_found(path: str) -> None:
    names = Names()
    names.profile.switch("day")
    with pytest.raises(ModelNotFound):
        names.directory.resolve_path(path)


def test_a_path_of_a_hundred_thousand_segments_costs_no_time() -> None:
    directory = Names().directory
    path = "m1" + "/x" * 100_000
    began = time.perf_counter()
    assert directory.resolve_path(path).name == "m1"
    with pytest.raises(ModelNotFound):
        directory.resolve_path("x" + "/x" * 100_000)
    assert time.perf_counter() - began < 1  # every beginning tried: minutes


def test_a_peer_without_models_offers_nothing() -> None:
    peers = PeerNames({"east": PeerConfig(id="east", models=("core",)), "none": PeerConfig(id="none")})
    assert said(peers.find("core")) == "east:core"
    assert peers.find("none/core") is None


def test_case_088_of_a_name_that_nothing_has_no_more_is_told_than_fits_on_a_line() -> None:
    directory = Names().directory

    assert directory.resolve("n" * 256).requested == "n" * 256
    resolved = directory.resolve("n" * 1_000_000)
    assert (resolved.destination, resolved.requested) == (None, "n" * 256 + "...")
