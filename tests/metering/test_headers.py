from __future__ import annotations

import pytest

from llamaswap.metering.headers import REDACTED, shown_headers, usual_case


@pytest.mark.parametrize(
    "name", ["Authorization", "PROXY-AUTHORIZATION", "cookie", "Set-Cookie", "x-api-key", "X-API-KEY"]
)
def test_credentials_are_never_shown_in_whatever_case_they_come(name: str) -> None:
    assert list(shown_headers([(name.encode(), b"s3cret")]).values()) == [REDACTED]


def test_of_a_repeated_field_the_first_value_is_shown() -> None:
    assert shown_headers([(b"X-Multi", b"one"), (b"x-multi", b"two")]) == {"X-Multi": "one"}


def test_names_are_written_in_the_usual_capitals() -> None:
    assert usual_case(b"x-session-ID") == "X-Session-Id"
    assert shown_headers([(b"user-agent", b"ua/1")]) == {"User-Agent": "ua/1"}


def test_fields_of_one_hop_are_left_out() -> None:
    assert shown_headers([(b"Host", b"h"), (b"Transfer-Encoding", b"chunked"), (b"Accept", b"*/*")]) == {
        "Accept": "*/*"
    }


def test_a_value_that_is_no_utf_8_is_shown_as_far_as_possible() -> None:
    assert shown_headers([(b"X-Odd", b"caf\xe9")]) == {"X-Odd": "caf�"}


def test_a_name_can_be_left_out() -> None:
    assert shown_headers([(b"Content-Encoding", b"gzip")], without=frozenset({b"content-encoding"})) == {}
