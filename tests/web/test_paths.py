"""Paths that are not in their plain form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaswap.errors import BadRequest
from llamaswap.web.paths import check_path, clean, location, moved, moved_for_good, redirect_page
from llamaswap.web.routes import Match, find_route

SEGMENTS = st.sampled_from([b"", b".", b"..", b"a", b".a", b"...", b"%2e%2e", b"%2F", b"x y"])
PATHS = st.lists(SEGMENTS, min_size=1, max_size=8).map(lambda parts: b"/" + b"/".join(parts))


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        (b"/", None),
        (b"/v1/models", None),
        (b"/.hidden/..name/a.", None),
        (b"/a/", None),
        (b"//", b"/"),
        (b"/v1//models", b"/v1/models"),
        (b"//v1/chat/completions", b"/v1/chat/completions"),
        (b"/a/./b", b"/a/b"),
        (b"/a/.", b"/a"),
        (b"/a/./", b"/a/"),
        (b"/a/b/..", b"/a"),
        (b"/a/b/../", b"/a/"),
        (b"/a/..", b"/"),
        (b"/a/../", b"/"),
        (b"/../../etc", b"/etc"),
        (b"/x/..//evil.example", b"/evil.example"),
        (b"/upstream/m1/a%20b//c%2Fd", b"/upstream/m1/a%20b/c%2Fd"),
    ],
)
def test_empty_and_dotted_segments_are_taken_out(path: bytes, plain: bytes | None) -> None:
    assert clean(path) == plain


@pytest.mark.parametrize("path", [b"/upstream/m1/%2e%2e/x", b"/upstream/m1/%2F%2F/x", b"/a/%2E/b"])
def test_an_escaped_dot_or_slash_is_part_of_a_name(path: bytes) -> None:
    assert clean(path) is None


@given(PATHS)
def test_a_cleaned_path_is_clean_and_stays_on_this_site(path: bytes) -> None:
    plain = clean(path)

    if plain is not None:
        assert clean(plain) is None
        assert plain.startswith(b"/") and not plain.startswith(b"//")
        assert plain != path


@given(PATHS)
def test_cleaning_keeps_every_name_in_its_order(path: bytes) -> None:
    names = [part for part in path.split(b"/") if part not in (b"", b".")]

    if b".." not in names:
        assert [part for part in (clean(path) or path).split(b"/") if part not in (b"", b".")] == names


@pytest.mark.parametrize(
    ("method", "path", "query", "place"),
    [
        (b"GET", b"/v1//models", b"x=1&y=a%20b", b"/v1/models?x=1&y=a%20b"),
        (b"POST", b"//v1/chat/completions", None, b"/v1/chat/completions"),
        (b"GET", b"/upstream/m1//a/b", None, b"/upstream/m1/a/b"),
        (b"DELETE", b"//x", None, b"/x"),
        (b"GET", b"/upstream/m1/a%20b//c%2Fd", b"", b"/upstream/m1/a%20b/c%2Fd"),
        (b"GET", b"/upstream//", None, b"/upstream/"),
        (b"GET", b"/ui", None, b"/ui/"),
        (b"HEAD", b"/ui", b"q", b"/ui/?q"),
        (b"GET", b"//ui", b"x=1", b"/ui/?x=1"),
        (b"GET", b"/a/../ui", None, b"/ui/"),
        (b"GET", b"/ui/.", None, b"/ui/"),
        (b"POST", b"/upstream", None, b"/upstream/"),
        (b"GET", b"/%75i", None, b"/%75i/"),
    ],
)
def test_a_request_is_sent_to_the_plain_form_with_its_query(
    method: bytes, path: bytes, query: bytes | None, place: bytes
) -> None:
    assert moved(method, path, query) == place


@pytest.mark.parametrize(
    ("method", "path"),
    [
        (b"GET", b"/"),
        (b"GET", b"/ui/"),
        (b"POST", b"/ui"),  # the subtree does not take this method: 405 there, not a redirect
        (b"GET", b"/health/"),
        (b"GET", b"/v1/models/"),
        (b"GET", b"/nothing"),
        (b"GET", b"/logs/stream"),
        (b"GET", b"/logs/stream/"),
        (b"GET", b"/upstream/m1"),
        (b"GET", b"/upstream/m1/x/"),
        (b"GET", b"/api/models/unload"),
        (b"POST", b"/api/models/unload"),
        (b"POST", b"/v1/chat/completions/"),
    ],
)
def test_other_requests_are_answered_where_they_are(method: bytes, path: bytes) -> None:
    assert moved(method, path, b"x=1") is None


@given(PATHS, st.sampled_from([b"GET", b"POST"]))
def test_following_a_redirect_once_is_enough(path: bytes, method: bytes) -> None:
    place = moved(method, path, None)

    if place is not None:
        assert moved(method, place, None) is None


def test_the_root_of_a_redirected_subtree_is_served() -> None:
    place = moved(b"GET", b"/ui", None)

    assert place is not None
    assert isinstance(find_route(b"GET", place), Match)


@pytest.mark.parametrize(
    ("path", "query", "place"),
    [
        (b"/a%20b/%C3%A9", None, b"/a%20b/%C3%A9"),
        (b"/na\xc3\xafve", None, b"/na%C3%AFve"),
        (b"/\\evil.example", None, b"/%5Cevil.example"),
        (b'/"x"<y>#z', b'a="b"#<c>\xe9', b"/%22x%22%3Cy%3E%23z?a=%22b%22%23%3Cc%3E%E9"),
        (b"/x", b"", b"/x"),
        (b"/x\r\ny", b"\r\nSet-Cookie: a", b"/x%0D%0Ay?%0D%0ASet-Cookie:%20a"),
    ],
)
def test_a_location_escapes_what_a_url_cannot_hold_and_nothing_twice(
    path: bytes, query: bytes | None, place: bytes
) -> None:
    assert location(path, query) == place


@pytest.mark.parametrize("path", [b"/a%zz", b"/a%", b"/a%4", b"/a%4g", b"/%%20", b"*", b""])
def test_a_path_that_cannot_be_decoded_is_refused(path: bytes) -> None:
    with pytest.raises(BadRequest) as refused:
        check_path(path)

    assert refused.value.status == 400


@pytest.mark.parametrize("path", [b"/", b"/a%20b", b"/%2F%2f%25"])
def test_a_path_with_good_escapes_passes(path: bytes) -> None:
    check_path(path)


def test_permanent_redirects_keep_a_method_that_browsers_would_change() -> None:
    assert [moved_for_good(m) for m in (b"GET", b"HEAD", b"POST", b"PUT")] == [301, 301, 308, 308]


def test_a_redirect_has_a_page_for_readers_only() -> None:
    place = b"/v1/models?x=1&y=2"
    where = (b"Location", place)
    kind = (b"Content-Type", b"text/html; charset=utf-8")
    page = b'<a href="/v1/models?x=1&amp;y=2">Temporary Redirect</a>.\n'

    assert redirect_page(b"GET", 307, place) == ((where, kind), page)
    assert redirect_page(b"HEAD", 307, place) == ((where, kind), page)  # sent without its body
    assert redirect_page(b"POST", 307, place) == ((where,), b"")
    assert b">Found<" in redirect_page(b"GET", 302, b"/ui")[1]
