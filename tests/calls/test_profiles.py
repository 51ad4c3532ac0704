"""Profiles, and the one that is on."""

from __future__ import annotations

import pytest

from llamaswap.calls.profiles import ActiveProfile, Pin, ProfileNotFound, requested_profile
from llamaswap.config.model import ProfileConfig
from llamaswap.errors import BadRequest

DAY = ProfileConfig(id="day", description="daytime", pins={"public/long": "m2", "public": "m1", "off": ""})
NIGHT = ProfileConfig(id="night", pins={"public": "m2"})


def profiles() -> ActiveProfile:
    return ActiveProfile({"night": NIGHT, "day": DAY})


def test_no_profile_is_on_at_first() -> None:
    profile = profiles()
    assert profile.active is None
    assert profile.pin("public") is None
    assert profile.pin_in_path("public/x") is None


def test_switching_tells_whether_that_is_a_change() -> None:
    profile = profiles()
    assert [profile.switch(name) for name in ("day", "day", "night", None, None)] == [
        True,
        False,
        True,
        True,
        False,
    ]


def test_only_the_pins_of_the_profile_that_is_on_count() -> None:
    profile = profiles()
    profile.switch("day")
    assert profile.pin("public") == Pin("public", "m1")
    assert profile.pin("off") == Pin("off", "")
    assert profile.pin("other") is None
    profile.switch("night")
    assert profile.pin("public") == Pin("public", "m2")
    assert profile.pin("off") is None


def test_an_unknown_profile_is_refused_and_changes_nothing() -> None:
    profile = profiles()
    profile.switch("day")

    with pytest.raises(ProfileNotFound) as caught:
        profile.switch("nope")

    assert (caught.value.status, caught.value.message) == (404, 'profile "nope" not found')
    assert profile.standing() == {"active": "day"}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("public", "public"),
        ("public/", "public"),
        ("public/x", "public"),
        ("public/long/x", "public/long"),
        ("public/longer", "public"),
        ("publicity/x", None),
        ("x/public", None),
        ("", None),
    ],
)
def test_a_path_is_pinned_by_the_longest_pin_of_whole_segments(path: str, name: str | None) -> None:
    profile = profiles()
    profile.switch("day")
    pin = profile.pin_in_path(path)
    assert (None if pin is None else pin.name) == name


def test_the_listing_is_sorted_and_shows_disabled_pins_as_empty() -> None:
    profile = profiles()
    profile.switch("night")

    listing = profile.listing()

    assert listing == {
        "active": "night",
        "profiles": [
            {
                "id": "day",
                "description": "daytime",
                "pins": {"off": "", "public": "m1", "public/long": "m2"},
            },
            {"id": "night", "description": "", "pins": {"public": "m2"}},
        ],
    }
    assert list(listing["profiles"][0]["pins"]) == ["off", "public", "public/long"]
    assert ActiveProfile({}).listing() == {"active": None, "profiles": []}


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b'{"name": "day"}', "day"),
        (b'{"name":"night","x":1}', "night"),
        (b'{"name":""}', None),
        (b'{"name":null}', None),
    ],
)
def test_a_request_names_a_profile_or_none(body: bytes, name: str | None) -> None:
    assert requested_profile(body) == name


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{bad", "invalid profile request"),
        (b"", "invalid profile request"),
        (b"[]", "invalid profile request"),
        (b'"day"', "invalid profile request"),
        (b'{"name":"\xff"}', "invalid profile request"),
        (b"[" * 100_000, "invalid profile request"),
        (b"{}", "profile name is required"),
        (b"null", "profile name is required"),
        (b'{"name":5}', "profile name must be a string or null"),
        (b'{"name":true}', "profile name must be a string or null"),
        (b'{"name":["day"]}', "profile name must be a string or null"),
    ],
)
def test_a_bad_request_is_told_what_is_wrong(body: bytes, message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        requested_profile(body)
    assert caught.value.message == message
