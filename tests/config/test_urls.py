"""What counts as a URL.  The corpus has many more."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.config.urls import leads_nowhere, url_trouble, without_user
from llamaswap.processes.health import parse_proxy
from support.config_checks import warnings_of


@pytest.mark.parametrize(
    "text",
    [
        "",
        "http://h",
        "https://u:p@h:1/x?y=1#z",
        "http://[::1]:80",
        "http://h/%20",
        "h:1",
        "only",
        "http://ü/",
        "/x",
    ],
)
def test_these_are_urls(text: str) -> None:
    assert url_trouble(text) is None


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("http://h:port", "port"),
        ("http://h:80:90/", "port"),
        ("http://[::1", "lacks the ]"),
        ("http://[nope]/", "IPv6"),
        (":foo", "scheme"),
        ("127.0.0.1:80", "scheme"),
        ("http://a b/", "host"),
        ("http://%41/", "host"),
        ("http://u|@h", "user part"),
        ("http://h/%zz", "%-escape"),
        ("http://h/#%z", "%-escape"),
        ("http://h\n", "control"),
    ],
)
def test_these_are_not(text: str, trouble: str) -> None:
    assert trouble in (url_trouble(text) or "")


@given(st.text())
def test_every_text_gets_an_answer(text: str) -> None:
    assert url_trouble(text) != ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://user:pass@h:1/p", "http://...@h:1/p"),
        ("http://user:p@ss@h", "http://...@h"),
        ("//user@h", "//...@h"),
        ("http://h/a@b?c=d@e#f@g", "http://h/a@b?c=d@e#f@g"),
        ("", ""),
    ],
)
def test_a_url_is_shown_without_its_user(text: str, shown: str) -> None:
    assert without_user(text) == shown


@pytest.mark.parametrize(
    "text",
    ["http://h", "https://u:p@h:1/x?y=1#z", "http://[::1]:80", " http://h ", "HTTP://h", "http://h:65535"],
)
def test_what_can_be_asked_leads_somewhere(text: str) -> None:
    assert leads_nowhere(text) is None
    assert parse_proxy(text).host


@pytest.mark.parametrize(
    "text",
    [
        *("localhost:9000", "only", "/x", "http:h", "http//h", "ftp://h", "http://", "http://:80", "//h"),
        *("http://h:65536", "http://h:70000/"),
    ],
)
def test_what_cannot_be_asked_leads_nowhere_for_the_same_reason(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(str(leads_nowhere(text)))):
        parse_proxy(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (
            "models: {a: {cmd: x, proxy: 'localhost:9000'}}",
            "'localhost:9000' is not an http:// or https:// URL",
        ),
        ("startPort: 70000\nmodels: {a: {cmd: 'x ${PORT}'}}", "'http://localhost:70000' is not a URL: Port"),
        (
            "peers: {p: {proxy: 'ftp://u:secret@h', models: [m]}}",
            "this one is not an http:// or https:// URL",
        ),
    ],
)
def test_a_proxy_that_leads_nowhere_is_doubted(text: str, complaint: str) -> None:
    (warning,) = warnings_of(text)

    assert f".proxy: {complaint}" in warning
    assert "so nothing can be sent there" in warning
    assert "secret" not in warning
