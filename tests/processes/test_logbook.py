"""What a logbook remembers, and what it tells others."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llamaswap.processes.logbook import HISTORY_BYTES, LINE_CHARACTERS, Logbook


@given(st.lists(st.binary(max_size=40), max_size=30), st.integers(1, 60))
def test_history_is_the_end_of_everything_that_was_appended(chunks: list[bytes], size: int) -> None:
    logbook = Logbook(size)

    for chunk in chunks:
        logbook.append(chunk)

    assert logbook.history() == b"".join(chunks)[-size:]
    assert logbook.written == sum(map(len, chunks))


def test_a_logbook_remembers_a_hundred_kibibytes() -> None:
    logbook = Logbook()

    for number in range(HISTORY_BYTES // 64 + 100):
        logbook.append(b"%063d\n" % number)

    assert len(logbook.history()) == HISTORY_BYTES == 102_400


def test_the_tail_is_the_last_lines_that_say_something() -> None:
    logbook = Logbook()
    logbook.append(b"one\n\n two \r\nthree\n\n")

    assert logbook.tail(2) == ["two", "three"]
    assert logbook.tail(0) == []
    assert logbook.tail(9) == ["one", "two", "three"]


def test_the_tail_is_free_of_colours_and_control_characters() -> None:
    logbook = Logbook()
    logbook.append(b"\x1b[1;31mred\x1b[0m\x07 \x1b]0;title\x07plain\x00\n10%\r90%\nbad \xff byte")

    assert logbook.tail(9) == ["red plain", "10%", "90%", "bad � byte"]


@given(st.binary(max_size=300))
def test_the_tail_can_always_be_printed(data: bytes) -> None:
    logbook = Logbook(200)
    logbook.append(data)

    assert all(char.isprintable() or char == "\t" for char in "".join(logbook.tail(9)))


def test_a_long_line_is_cut() -> None:
    logbook = Logbook()
    logbook.append(b"x" * 5000)

    assert logbook.tail(1) == ["x" * LINE_CHARACTERS]


def test_the_tail_since_a_moment_leaves_out_what_came_before() -> None:
    logbook = Logbook(20)
    logbook.append(b"before\n")
    moment = logbook.written

    assert logbook.tail(5, since=moment) == []
    logbook.append(b"after\n")
    assert logbook.tail(5, since=moment) == ["after"]
    logbook.append(b"and more than it can hold\n")
    assert logbook.tail(5, since=moment) == ["re than it can hold"]


def test_subscribers_get_each_later_chunk_until_they_leave() -> None:
    logbook, seen = Logbook(), list[bytes]()
    logbook.append(b"early")
    leave = logbook.subscribe(seen.append)

    logbook.append(b"one")
    leave()
    leave()
    logbook.append(b"two")

    assert seen == [b"one"]


def test_a_subscriber_may_leave_while_it_is_told() -> None:
    logbook, seen = Logbook(), list[bytes]()

    def once(data: bytes) -> None:
        leave()
        seen.append(data)

    leave = logbook.subscribe(once)
    logbook.subscribe(seen.append)

    logbook.append(b"x")

    assert seen == [b"x", b"x"]


def test_one_logbook_can_collect_from_several() -> None:
    first, second, all_of_them = Logbook(), Logbook(), Logbook()
    first.subscribe(all_of_them.append)
    second.subscribe(all_of_them.append)

    first.append(b"a")
    second.append(b"b")

    assert all_of_them.history() == b"ab"
