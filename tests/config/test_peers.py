"""Other servers."""

from __future__ import annotations

import pytest

from llamaswap.config.model import PeerConfig, Timeouts
from support.config_checks import loaded, rejected, warnings_of


def test_a_peer_is_read_with_its_own_default_for_the_response_header() -> None:
    peer = loaded(
        "peers: {p: {proxy: 'https://h/v', models: [q, 1.50], apiKey: k, timeouts: {connect: 1}}}"
    ).peers["p"]
    assert peer == PeerConfig(
        id="p",
        proxy="https://h/v",
        models=("q", "1.5"),
        api_key="k",
        timeouts=Timeouts(connect=1, response_header=60),
    )


def test_a_peers_key_is_not_shown() -> None:
    assert "secret" not in repr(
        loaded("peers: {p: {proxy: 'http://h', models: [q], apiKey: secret}}").peers["p"]
    )


def test_a_null_peer_is_empty() -> None:
    assert loaded("peers: {p: ~}").peers["p"].timeouts.response_header == 0


@pytest.mark.parametrize(
    ("block", "complaint"),
    [
        ("{models: [q]}", "peers.p.proxy: expected the peer's URL"),
        ("{proxy: 'http://h'}", "peers.p.models: expected at least one model"),
        ("{proxy: 'http://h', models: [~]}", "peers.p.models: expected at least one model"),
        ("{proxy: 'http://h:x', models: [q]}", "peers.p.proxy: expected a URL, but 'http://h:x' has a port"),
    ],
)
def test_an_incomplete_peer_is_refused(block: str, complaint: str) -> None:
    (line,) = rejected(f"peers: {{p: {block}}}")
    assert line.partition(": ")[2].startswith(complaint)


def test_a_key_with_a_line_end_is_warned_about_and_not_repeated() -> None:
    (line,) = warnings_of("peers: {p: {proxy: 'http://h', models: [q], apiKey: \"sk-secret\\n\"}}")
    assert "peers.p.apiKey: holds a line end" in line
    assert "secret" not in line


def test_a_wrong_url_with_a_password_is_not_repeated() -> None:
    (line,) = rejected("peers: {p: {proxy: 'http://u:sec/ret@h', models: [q]}}")
    assert line.endswith("peers.p.proxy: expected a URL, but this one has a port that is no number")
