"""A chat client's company while its model loads."""

from __future__ import annotations

import json
from random import Random

import pytest

from llamaswap.config.model import ModelConfig
from llamaswap.web.chatter import REMARKS
from llamaswap.web.early import LAGGING_BYTES
from llamaswap.web.loading import TICK, LoadingStory, tells_of_loading
from support.web_early import HEAD, POST, Waiting

OPENING = "━━━━━\nllama-swap loading model: m1\n"


class Telling(Waiting):
    """A client that is told a story."""

    def __init__(self, *, ready: bool = False, request: bytes = POST) -> None:
        super().__init__(request=request)
        self.is_ready = ready
        self.story = LoadingStory(self.early, "m1", self.clock, Random(7), is_ready=lambda: self.is_ready)

    def events(self) -> list[str]:
        """The texts of the events since the last time."""
        data = self.client.take()
        assert not data or data.endswith(b"\n\n")
        raw = [part for part in data.removeprefix(HEAD).split(b"\n\n") if part]
        texts = [json.loads(part.removeprefix(b"data: "))["choices"][0]["delta"] for part in raw]
        return [text["reasoning_content"] for text in texts]

    def text(self) -> str:
        """The whole text since the last time."""
        return "".join(self.events())


def test_a_streamed_chat_with_a_model_that_wants_it_is_told() -> None:
    wants = ModelConfig(id="m1", send_loading_state=True)

    assert tells_of_loading(wants, b"/v1/chat/completions?x=1", stream=True)
    assert not tells_of_loading(wants, b"/v1/chat/completions", stream=False)
    assert not tells_of_loading(wants, b"/chat/completions", stream=True)
    assert not tells_of_loading(wants, b"/v1/completions", stream=True)
    assert not tells_of_loading(ModelConfig(id="m1"), b"/v1/chat/completions", stream=True)


def test_it_begins_at_once_with_a_head_and_is_typed_in_small_pieces() -> None:
    telling = Telling()

    telling.story.dispatched()

    assert telling.client.take() == HEAD + (
        'data: {"choices":[{"delta":{"reasoning_content":"━━━━━"}}]}\n\n'.encode()
    )
    telling.advance(15 / 75 - 0.05)
    assert telling.events() == []
    telling.advance(0.05 + 1 / 32)
    assert telling.events() == ["\n", "llama"]
    telling.advance(TICK)
    assert (telling.text()).startswith("-swap loading model: m1\n")


def test_before_the_admission_nothing_is_sent_and_a_refusal_keeps_its_status() -> None:
    telling = Telling()

    telling.advance(3)

    assert telling.client.take() == b""
    telling.story.ends()
    assert not telling.exchange.started
    telling.story.dispatched()
    assert telling.client.take() == b""


def test_who_need_not_wait_gets_an_ordinary_answer() -> None:
    telling = Telling(ready=True)

    telling.story.queued(lambda: 1)
    telling.is_ready = False
    telling.story.dispatched()
    telling.advance(2)

    assert telling.client.take() == b""
    telling.story.ends()
    assert (telling.exchange.started, telling.timers()) == (False, 0)


def test_the_first_tick_brings_a_remark_and_the_others_dots() -> None:
    telling = Telling()
    telling.story.dispatched()
    telling.advance(TICK - 1 / 64)
    assert telling.text() == OPENING

    telling.advance(4)

    text = telling.text()
    remark, dots = text.rstrip(".").removeprefix("\n").rstrip(" "), len(text) - len(text.rstrip("."))
    assert next(said for said in REMARKS if f"\n{said} " in text).rstrip(".") == remark.rstrip(".")
    assert 3 <= dots <= 6


def test_remarks_come_every_five_to_nine_seconds() -> None:
    telling = Telling()
    telling.story.dispatched()
    telling.advance(120)

    text = telling.text()

    said = sum(text.count(f"\n{remark} ") for remark in REMARKS)
    assert 120 / (9 + TICK) - 1 <= said <= 120 / 5 + 1
    assert text.count(".") > 60


def test_a_place_in_the_queue_is_told_when_it_is_new() -> None:
    telling, place = Telling(), 3
    telling.story.queued(lambda: place)
    telling.advance(TICK + 1)
    assert "\nQueue position: #3 " in telling.text()

    telling.advance(4)
    assert "Queue" not in telling.text()
    place = 1
    telling.advance(2)
    assert "\nQueue position: #1 " in telling.text()


def test_only_the_newest_place_is_told() -> None:
    telling, place = Telling(), 5
    telling.story.queued(lambda: place)
    place = 4
    telling.advance(3)

    text = telling.text()
    assert "#4 " in text and "#5" not in text


@pytest.mark.parametrize("how", ["dispatched", "gone"])
def test_who_has_left_the_queue_has_no_place_any_more(how: str) -> None:
    telling = Telling()
    places = [2]
    telling.story.queued(lambda: places[0] if places else None)
    if how == "dispatched":
        telling.story.dispatched()
    else:
        places.clear()

    telling.advance(5)

    assert "Queue" not in telling.text()


def test_when_the_model_is_ready_the_rest_is_said_at_once_and_the_answer_follows() -> None:
    telling = Telling()
    telling.story.queued(lambda: None)
    telling.advance(0.3)

    telling.story.ends()

    assert telling.text() == OPENING + "\nDone! (0.30s)\n━━━━━\n \n"
    assert telling.timers() == 0


def test_a_remark_that_is_being_typed_is_not_cut_in_the_middle() -> None:
    telling = Telling()
    telling.story.dispatched()
    telling.advance(TICK + 1 / 16)

    telling.story.ends()

    text = telling.text()
    assert any(f"\n{remark} \nDone! (0.81s)\n" in text for remark in REMARKS)


def test_there_is_no_second_farewell() -> None:
    telling = Telling()
    telling.story.dispatched()
    telling.story.ends()
    assert telling.text().count("Done!") == 1

    telling.story.ends()

    assert telling.client.take() == b""


def test_being_hushed_ends_the_typing() -> None:
    telling = Telling()
    telling.story.dispatched()
    assert telling.timers() == 1

    telling.story.hush()

    assert telling.timers() == 0


def test_a_client_that_has_left_is_told_nothing() -> None:
    telling = Telling()
    telling.client.leave()

    telling.story.dispatched()

    assert (telling.exchange.started, telling.timers()) == (False, 0)


def test_a_client_that_does_not_read_is_told_nothing_new() -> None:
    telling = Telling(request=POST.replace(b"1.0", b"1.1").replace(b"Content", b"Host: h\r\nContent"))
    telling.story.dispatched()
    telling.advance(TICK - 1 / 64)
    telling.client.stall()
    telling.exchange.write(b"x" * (LAGGING_BYTES + 1))
    behind = telling.exchange.buffered

    telling.advance(20)

    assert telling.exchange.buffered == behind
    telling.client.go_on()
    telling.client.take()
    telling.advance(TICK)
    assert telling.client.take() != b""
