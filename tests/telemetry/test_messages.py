from __future__ import annotations

import json

from llamaswap.scheduling.vocabulary import Band, BandView, QueueView, Ticket
from llamaswap.telemetry.messages import ACTIVITY, log_message, message, queue_status
from support.telemetry_board import read_events


def test_a_message_has_the_bytes_that_clients_of_llama_swap_read() -> None:
    assert message(ACTIVITY, {"id": 37}) == (
        b'event:message\ndata:{"type":"activity","data":"{\\"id\\":37}"}\n\n'
    )


def test_text_of_any_kind_stays_within_its_line_and_comes_back_whole() -> None:
    text = "one\r\ntwo\n\n\x1b[31mrot\x1b[0m ü 模型 \U0001f999 \u2028"

    told = log_message("upstream", text)

    assert told.count(b"\n") == 3
    assert read_events(told) == [("logData", {"source": "upstream", "data": text})]


def test_half_a_surrogate_pair_does_not_break_the_stream() -> None:
    told = message("activity", {"id": "\ud83e"})

    assert json.loads(told.decode().split("data:", 1)[1])["data"] == '{"id":"?"}'


def test_the_queue_is_shown_by_band_with_the_models_that_run() -> None:
    bands = {band: BandView(depth=0, oldest_wait=0.0) for band in Band}
    bands[Band.BATCH] = BandView(depth=3, oldest_wait=61.2345)
    jobs = tuple(Ticket(number=n, model=model, priority=0, arrived=0.0) for n, model in enumerate("aba"))

    assert queue_status(QueueView(bands=bands, jobs=jobs)) == {
        "bands": {
            "interactive": {"depth": 0, "oldest_wait_ms": 0},
            "normal": {"depth": 0, "oldest_wait_ms": 0},
            "batch": {"depth": 3, "oldest_wait_ms": 61234},
        },
        "running": ["a", "b"],
        "paused": [],
    }


def test_the_queue_says_which_bands_are_held_up_in_the_order_of_the_bands() -> None:
    bands = {band: BandView(depth=0, oldest_wait=0.0) for band in Band}
    view = QueueView(bands=bands, jobs=(), paused=frozenset({Band.BATCH, Band.INTERACTIVE}))

    assert queue_status(view)["paused"] == ["interactive", "batch"]
