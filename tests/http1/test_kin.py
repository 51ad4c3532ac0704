"""What heads have in common that differ in Content-Length only."""

from __future__ import annotations

import time

import pytest

from llamaswap.http1.heads import RequestHead, ResponseHead
from llamaswap.http1.kin import Headers, Kin


def ask(*headers: tuple[bytes, bytes]) -> RequestHead:
    return RequestHead(b"POST", b"/x?y", (1, 1), headers)


def test_heads_of_other_lengths_share_what_was_derived() -> None:
    asked: list[RequestHead] = []

    def compute(head: RequestHead) -> int:
        asked.append(head)
        return len(asked)

    head = ask((b"a", b"1"), (b"Content-Length", b"5"))
    other = head.with_length(b"70")

    assert [one.derived("k", compute) for one in (head, other, head)] == [1, 1, 1]
    assert other.derived("l", compute) == 2
    assert other.kin is head.kin


def test_none_is_an_answer_that_is_kept_and_a_failure_is_not() -> None:
    answers: list[str | None] = ["soon", None]

    def compute(_: RequestHead) -> str | None:
        if answers[0] is not None:
            raise KeyError(answers.pop(0))
        return answers.pop()

    head = ask()
    with pytest.raises(KeyError):
        head.derived("k", compute)

    assert [head.derived("k", compute) for _ in range(2)] == [None, None]
    assert answers == []


def test_a_thousand_questions_leave_only_a_few_answers() -> None:
    head = ask()

    for number in range(1000):
        assert head.derived(number, lambda _, number=number: number) == number  # type: ignore[misc]  # a default is the loop's own

    assert len(head.kin.memories) <= 32


def test_a_head_with_another_length_is_that_head() -> None:
    head = ask((b"a", b"1"), (b"Content-LENGTH", b"5"), (b"b", b"2")).with_length(b"007")

    assert head == ask((b"a", b"1"), (b"Content-LENGTH", b"007"), (b"b", b"2"))
    assert hash(head) == hash(ask((b"a", b"1"), (b"Content-LENGTH", b"007"), (b"b", b"2")))
    assert (head.get(b"content-length"), head.length) == (b"007", 7)
    assert (head.path, head.query, head.get(b"b")) == (b"/x", b"y", b"2")
    assert head != ask()
    assert "007" in repr(head)


def test_a_response_with_another_length_is_that_response() -> None:
    head = ResponseHead(200, b"OK", (1, 1), ((b"Content-Length", b"5"), (b"c", b"1")))

    assert head.with_length(b"66") == ResponseHead(
        200, b"OK", (1, 1), ((b"Content-Length", b"66"), (b"c", b"1"))
    )
    assert head.derived("k", lambda head: head.status) == 200


@pytest.mark.parametrize(
    "headers",
    [
        ((b"Content-Length", b"x"),),
        ((b"Content-Length", b""),),
        ((b"Content-Length", b"1" * 21),),
        ((b"Content-Length", b"1"), (b"content-length", b"1")),
        (),
    ],
)
def test_what_is_no_number_is_no_length(headers: Headers) -> None:
    head = ask(*headers)

    assert (head.length, head.length_text) == (None, None)
    assert head.get(b"content-length") == (headers[0][1] if headers else None)


def test_all_values_of_a_repeated_field_are_found() -> None:
    kin = Kin((1, 1), ((b"Via", b"a"), (b"x", b"b"), (b"vIA", b"c")))

    assert (kin.values(b"via"), kin.values(b"x"), kin.values(b"y")) == ([b"a", b"c"], [b"b"], [])
    assert kin.names == [b"via", b"x", b"via"]


def test_a_head_full_of_one_field_is_read_in_no_time() -> None:
    """Anybody may send one, also without a key."""
    fields = ((b"A", b""),) * 60_000
    began = time.monotonic()

    kin = Kin((1, 1), fields)

    assert time.monotonic() - began < 0.5
    assert kin.values(b"a") == [b""] * 60_000
