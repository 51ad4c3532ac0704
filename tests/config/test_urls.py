"""What counts as a URL.  The corpus has many more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.config.urls import url_trouble, without_user


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
