"""What a waiting client is told by one or by two who keep it company."""

from __future__ import annotations

from random import Random

import pytest

from llamaswap.errors import ShuttingDown
from llamaswap.web.company import Company
from llamaswap.web.early import DOCUMENT, EVENTS
from llamaswap.web.keepalive import Rhythm
from llamaswap.web.loading import LoadingStory
from support.web_early import Waiting

EVERY = 2.0


def with_signs(waiting: Waiting) -> Company:
    """Signs of life and nothing else."""
    return Company(waiting.early, "m", waiting.clock, story=None, rhythm=Rhythm(EVENTS, EVERY))


def with_both(waiting: Waiting, *, ready: bool = False) -> Company:
    """Signs of life, and the text of a load."""
    story = LoadingStory(waiting.early, "m", waiting.clock, Random(7), is_ready=lambda: ready)
    return Company(waiting.early, "m", waiting.clock, story=story, rhythm=Rhythm(EVENTS, EVERY))


def test_the_signs_say_where_a_call_stands() -> None:
    waiting, place = Waiting(), 3
    company = with_signs(waiting)
    waiting.advance(EVERY + 0.1)
    company.queued(lambda: place)
    waiting.advance(EVERY)
    place = 1
    waiting.advance(EVERY)
    company.dispatched()
    waiting.advance(EVERY)
    company.leased()
    waiting.advance(EVERY)

    assert waiting.told().split(b"\n\n") == [
        b": queued",
        b": queued, position 3",
        b": queued, position 1",
        b": loading m",
        b": waiting for m",
        b"",
    ]


def test_a_document_is_kept_alive_by_white_space() -> None:
    waiting = Waiting(DOCUMENT)
    company = Company(waiting.early, "m", waiting.clock, story=None, rhythm=Rhythm(DOCUMENT, EVERY))
    company.queued(lambda: 3)

    waiting.advance(2 * EVERY + 0.1)

    assert waiting.client.take().partition(b"\r\n\r\n")[2] == b"  "


def test_behind_the_first_byte_of_the_answer_there_are_no_signs() -> None:
    waiting = Waiting()
    company = with_signs(waiting)
    company.leased()
    waiting.advance(EVERY + 0.1)
    stream = company.answered()
    assert stream is not None
    waiting.told()
    waiting.advance(EVERY)
    assert waiting.told() == b": waiting for m\n\n"

    stream.write(b"data: 1")
    waiting.advance(5 * EVERY)

    assert waiting.told() == b"data: 1"
    assert waiting.timers() == 0


def test_an_answer_that_came_in_time_is_no_early_one() -> None:
    waiting = Waiting()
    company = with_signs(waiting)
    company.leased()

    assert company.answered() is None

    waiting.advance(5 * EVERY)
    assert not waiting.exchange.started


def test_while_a_load_is_told_there_is_no_sign() -> None:
    waiting = Waiting()
    company = with_both(waiting)
    company.queued(lambda: None)

    waiting.advance(10 * EVERY)

    assert b"\n: " not in waiting.told()


def test_signs_begin_where_the_text_of_a_load_has_ended() -> None:
    waiting = Waiting()
    company = with_both(waiting)
    company.dispatched()
    waiting.advance(3)
    company.leased()
    assert waiting.told().endswith(b"\n\n")

    waiting.advance(EVERY + 0.1)

    assert waiting.told() == b": waiting for m\n\n"


def test_signs_come_where_a_ready_model_leaves_the_text_silent() -> None:
    waiting = Waiting()
    company = with_both(waiting, ready=True)
    company.queued(lambda: 2)

    waiting.advance(EVERY + 0.1)

    assert waiting.told() == b": queued, position 2\n\n"


@pytest.mark.parametrize("begun", [True, False])
def test_a_refusal_ends_both(*, begun: bool) -> None:
    waiting = Waiting()
    company = with_both(waiting)
    if begun:
        company.dispatched()

    told = company.refuse(ShuttingDown())

    assert (told is not None) == begun == (b"shutting down" in waiting.told())
    assert waiting.timers() == 0


def test_somebody_elses_end_is_told_by_signs_only() -> None:
    signs, story = Waiting(), Waiting()
    kept = with_signs(signs)
    signs.advance(EVERY + 0.1)
    text = LoadingStory(story.early, "m", story.clock, Random(7), is_ready=lambda: False)
    typed = Company(story.early, "m", story.clock, story=text, rhythm=None)
    typed.dispatched()

    kept.cancelled(ShuttingDown())
    typed.cancelled(ShuttingDown())

    assert b"shutting down" in signs.told() and b"shutting down" not in story.told()
    assert not story.exchange.finished


def test_leaving_the_block_ends_both() -> None:
    waiting = Waiting()

    with with_both(waiting) as company:
        company.dispatched()
        assert waiting.timers() == 2

    assert waiting.timers() == 0
