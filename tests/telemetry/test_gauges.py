"""What is only true when it is asked for."""

from __future__ import annotations

import pytest

from llamaswap.scheduling.vocabulary import Band, BandView
from support.telemetry_scrape import EMPTY, Scrape


def test_the_queue_is_what_it_is_at_scrape_time() -> None:
    scrape = Scrape()
    scrape.bands[Band.BATCH] = BandView(depth=3, oldest_wait=12.5)
    assert scrape.value("llamaswap_scheduler_queue_depth", band="batch") == 3
    assert scrape.value("llamaswap_scheduler_queue_oldest_wait_seconds", band="batch") == 12.5

    scrape.bands[Band.BATCH] = EMPTY
    assert scrape.value("llamaswap_scheduler_queue_depth", band="batch") == 0


def test_a_band_is_paused_while_it_is() -> None:
    scrape = Scrape()
    nobody = {"interactive": 0, "normal": 0, "batch": 0}
    assert scrape.by("band", "llamaswap_scheduler_paused") == nobody

    scrape.paused = frozenset({Band.BATCH})
    assert scrape.by("band", "llamaswap_scheduler_paused") == {**nobody, "batch": 1}

    scrape.paused = frozenset()
    assert scrape.by("band", "llamaswap_scheduler_paused") == nobody


@pytest.mark.parametrize("state", ["stopped", "starting", "ready", "stopping"])
def test_a_model_is_in_exactly_one_state(state: str) -> None:
    scrape = Scrape()
    scrape.states["a"] = state

    shown = scrape.by("state", "llamaswap_model_state", model="a")

    assert len(shown) == 4
    assert [name for name, value in shown.items() if value] == [state]


def test_a_model_that_a_reload_has_taken_away_has_no_state() -> None:
    scrape = Scrape()
    del scrape.states["a"]

    assert set(scrape.by("model", "llamaswap_model_state")) == {"b"}
