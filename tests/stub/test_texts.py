"""Whole answers."""

from __future__ import annotations

import pytest

from llamaswap.stub import texts
from llamaswap.stub.options import Manner


@pytest.mark.parametrize("path", sorted(texts.WHOLE))
def test_an_answer_names_its_model_and_is_the_same_each_time(path: str) -> None:
    make = texts.WHOLE[path]

    assert make("m", Manner()) == make("m", Manner())
    assert make("m", Manner())["model"] == "m"


def test_a_chat_has_so_many_words_and_counts_them() -> None:
    answer = texts.chat("m", Manner(tokens=2))

    assert answer["choices"][0]["message"]["content"] == "wörd0 wörd1 "
    assert answer["usage"] == {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    assert answer["timings"]["predicted_n"] == 2


def test_usage_and_timings_are_those_that_were_given() -> None:
    manner = Manner(usage={"total_tokens": 9}, timings={"predicted_ms": 1.5})

    answer = texts.completion("m", manner)

    assert (answer["usage"], answer["timings"]) == ({"total_tokens": 9}, {"predicted_ms": 1.5})


@pytest.mark.parametrize("path", sorted(texts.WHOLE))
def test_empty_usage_and_timings_are_left_out(path: str) -> None:
    answer = texts.WHOLE[path]("m", Manner(usage={}, timings={}))

    assert not {"usage", "timings"} & answer.keys()


def test_an_error_is_worded_as_llama_server_does() -> None:
    assert texts.error(503, "Loading model") == {
        "error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}
    }
