"""Bands, and that what is passed around cannot be changed."""

from __future__ import annotations

import pytest

from llamaswap.scheduling.vocabulary import BAND_ANCHORS, Band, Facts, Ticket, band_of


@pytest.mark.parametrize(
    ("priority", "band"),
    [
        (2**63 - 1, Band.INTERACTIVE),
        (10**6, Band.INTERACTIVE),
        (102, Band.INTERACTIVE),
        (100, Band.INTERACTIVE),
        (99, Band.NORMAL),
        (50, Band.NORMAL),
        (2, Band.NORMAL),
        (0, Band.NORMAL),
        (-1, Band.BATCH),
        (-98, Band.BATCH),
        (-100, Band.BATCH),
        (-101, Band.BATCH),
        (-(2**63), Band.BATCH),
    ],
)
def test_a_band_is_the_highest_anchor_not_above_the_priority(priority: int, band: Band) -> None:
    assert band_of(priority) is band


@pytest.mark.parametrize("band", Band)
@pytest.mark.parametrize("offset", [0, 1, 2, 99])
def test_a_small_bonus_never_leaves_its_band(band: Band, offset: int) -> None:
    assert band_of(BAND_ANCHORS[band] + offset) is band


def test_bands_are_written_as_the_metrics_label_them() -> None:
    assert [str(band) for band in Band] == ["interactive", "normal", "batch"]


def test_a_ticket_cannot_be_changed_once_it_waits() -> None:
    ticket = Ticket(number=1, model="A", priority=0, arrived=0.0)

    with pytest.raises(AttributeError):
        ticket.priority = 100  # type: ignore[misc]  # that it must not be possible is the point


def test_without_news_nothing_runs() -> None:
    assert (Facts(now=0.0).running, Facts(now=0.0).ready) == (frozenset(), frozenset())
