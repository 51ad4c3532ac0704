from __future__ import annotations

import pytest

from llamaswap.activity.query import SORTS, ActivityQuery, BadQuery, parse_query


def asked(**pairs: str) -> ActivityQuery:
    return parse_query(list(pairs.items()))


def test_nothing_asked_is_the_first_page_of_the_newest() -> None:
    assert parse_query([]) == ActivityQuery()
    assert (
        asked(limit="", page="", sort="", order="", model="", start="", end="", min_id="") == ActivityQuery()
    )


def test_everything_can_be_asked_at_once() -> None:
    query = asked(
        limit="999",
        page="3",
        sort="gen_speed",
        order="Asc",
        model="m1",
        start="2026-01-01T00:00:00Z",
        end="2026-01-01T01:00:00+01:00",
        min_id="2",
        max_id="+2",
    )
    assert query == ActivityQuery(
        limit=999,
        page=3,
        sort="gen_speed",
        descending=False,
        models=("m1",),
        start=1767225600,
        end=1767225600,
        min_id=2,
        max_id=2,
    )


def test_models_may_repeat_and_blank_ones_do_not_count() -> None:
    assert parse_query([("model", "m1"), ("model", " "), ("model", "m2"), ("model", "")]).models == (
        "m1",
        "m2",
    )


def test_of_other_repeated_names_the_first_counts() -> None:
    assert parse_query([("limit", "2"), ("limit", "x"), ("unknown", "y")]).limit == 2


@pytest.mark.parametrize("sort", SORTS)
def test_each_column_can_be_sorted_by(sort: str) -> None:
    assert asked(sort=sort).sort == sort


@pytest.mark.parametrize(
    "text", ["2026-01-01T00:00:00.999Z", "2026-01-01T00:00:00,1Z", "2025-12-31T19:00:00-05:00"]
)
def test_a_moment_counts_with_its_second(text: str) -> None:
    assert asked(start=text).start == 1767225600


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ({"limit": "abc"}, "invalid limit"),
        ({"limit": "1_0"}, "invalid limit"),
        ({"limit": " 1"}, "invalid limit"),
        ({"limit": "9" * 30}, "invalid limit"),
        ({"limit": "0"}, "limit must be between 1 and 999"),
        ({"limit": "1000"}, "limit must be between 1 and 999"),
        ({"limit": "-1"}, "limit must be between 1 and 999"),
        ({"page": "0"}, "page must be >= 1"),
        ({"page": "x"}, "page must be >= 1"),
        ({"sort": "nope"}, "invalid sort column"),
        ({"sort": "ts_created"}, "invalid sort column"),
        ({"order": "up"}, "order must be asc or desc"),
        ({"min_id": "abc"}, "min_id must be >= 1"),
        ({"min_id": "-1"}, "min_id must be >= 1"),
        ({"max_id": "0"}, "max_id must be >= 1"),
        ({"min_id": "5", "max_id": "4"}, "min_id must be <= max_id"),
        ({"start": "2026-01-02T00:00:00Z", "end": "2026-01-01T00:00:00Z"}, "start must be before end"),
    ],
)
def test_a_bad_value_is_refused_in_llama_swaps_words(pairs: dict[str, str], message: str) -> None:
    with pytest.raises(BadQuery) as refusal:
        asked(**pairs)
    assert str(refusal.value) == message


@pytest.mark.parametrize("name", ["start", "end"])
@pytest.mark.parametrize(
    "text",
    [
        "nonsense",
        "2026-01-01",
        "2026-01-01T00:00:00",
        "2026-13-01T00:00:00Z",
        "2026-01-01T25:00:00Z",
        "2026-01-01 00:00:00Z",
        "2026-01-01T00:00:00 02:00",
        "20260101T000000Z",
        "2026-W01-1T00:00:00Z",
    ],
)
def test_a_time_that_is_not_rfc_3339_is_refused(name: str, text: str) -> None:
    with pytest.raises(BadQuery) as refusal:
        asked(**{name: text})
    assert str(refusal.value) == f"invalid '{name}' timestamp, use RFC3339 format"


def test_of_several_mistakes_the_first_in_order_is_told() -> None:
    with pytest.raises(BadQuery, match="invalid limit"):
        asked(max_id="0", order="up", limit="x")
