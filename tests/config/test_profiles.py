"""Pins."""

from __future__ import annotations

import pytest

from llamaswap.config.model import ProfileConfig
from support.config_checks import TWO_MODELS, loaded, rejected

MORE = "peers: {p: {proxy: 'http://h', models: [q]}}\nselectors: {sel: {strategy: pin, targets: [a]}}"


def test_pins_lead_to_models_aliases_peers_selectors_or_nothing() -> None:
    pins = "{x: a, a: bee, 8: q, y: p/q, z: sel, off: ~, none: ''}"
    config = loaded(f"{TWO_MODELS}\n{MORE}\nprofiles: {{f: {{description: d, pins: {pins}}}}}")
    want = {"x": "a", "a": "bee", "8": "q", "y": "p/q", "z": "sel", "off": "", "none": ""}
    assert config.profiles["f"] == ProfileConfig(id="f", description="d", pins=want)


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        ("f: [a]", "profiles.f: expected description and pins, got a list"),
        ("f: ~", "profiles.f: expected description and pins, got nothing"),
        ("f: {pins: {}}", "profiles.f.pins: expected at least one pin"),
        ("f: {pins: {x: y, y: a}}", "profiles.f.pins.x: 'y' is no model, alias or peer's model"),
        ("f: {pins: {p/q: a}}", "profiles.f.pins.p/q: 'p/q' is a peer's model and can't be pinned"),
        ("f: {pins: {'': a}}", "profiles.f.pins.: expected the name that is asked for"),
        ("' ': {pins: {x: a}}", "profiles. : expected a name"),
    ],
)
def test_an_unsound_profile_is_refused(block: str, complaint: str) -> None:
    have = rejected(f"{TWO_MODELS}\n{MORE}\nprofiles: {{{block}}}")
    assert [line.partition(": ")[2] for line in have] == [complaint]
