from __future__ import annotations

import os
import signal
import sqlite3
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llamaswap.activity.query import SORTS, ActivityQuery
from llamaswap.activity.rows import values_of
from llamaswap.activity.store import _GOOD_ROWS, ActivityStore
from llamaswap.metering.usage import Usage
from support.activity_rows import add_all, visit

Opener = Callable[..., ActivityStore]

WRITE_FOR_EVER = """
import sys
from llamaswap.activity.store import ActivityStore
from support.activity_rows import add_all, visit
store = ActivityStore(sys.argv[1], 0)
while True:
    print(add_all(store, [visit()])[0], flush=True)
"""


@pytest.fixture
def opened() -> Iterator[Opener]:
    stores: list[ActivityStore] = []

    def opener(path: Path | None = None, max_rows: int = 0) -> ActivityStore:
        stores.append(ActivityStore(str(path) if path else None, max_rows))
        return stores[-1]

    yield opener
    for store in stores:
        store.close()


def ids(page: dict[str, Any]) -> list[int]:
    return [row["id"] for row in page["data"]]


def found(store: ActivityStore, **asked: Any) -> list[int]:
    return ids(store.page(ActivityQuery(**asked)))


def test_an_empty_store_has_an_empty_page(opened: Opener) -> None:
    assert opened().page(ActivityQuery()) == {
        "data": [],
        "page": 1,
        "limit": 25,
        "total": 0,
        "total_pages": 0,
    }


def test_rows_get_ids_in_order_and_come_back_newest_first(opened: Opener) -> None:
    store = opened()
    assert add_all(store, [visit("a"), visit("b")]) == [1, 2]
    assert add_all(store, []) == []
    assert add_all(store, [visit("c", metadata={"selector": "fast"}, error_msg="no")]) == [3]
    page = store.page(ActivityQuery())
    assert [(row["id"], row["model"]) for row in page["data"]] == [(3, "c"), (2, "b"), (1, "a")]
    assert (page["data"][0]["metadata"], page["data"][0]["error_msg"]) == ({"selector": "fast"}, "no")


def test_the_upstreams_time_is_stored_where_it_is_longer(opened: Opener) -> None:
    store = opened()
    add_all(store, [visit(duration_ms=1, usage=Usage(upstream_ms=1450))])
    assert store.page(ActivityQuery())["data"][0]["duration_ms"] == 1450


def test_memory_keeps_only_the_newest_ids(opened: Opener) -> None:
    store = opened(max_rows=2)
    for _ in range(3):
        add_all(store, [visit()])
    assert found(store) == [3, 2]
    add_all(store, [visit() for _ in range(5)])
    assert found(store) == [8, 7]


def test_memory_keeps_a_thousand_rows_unless_told(opened: Opener) -> None:
    store = opened(max_rows=-1)
    add_all(store, [visit() for _ in range(1003)])
    assert store.page(ActivityQuery())["total"] == 1000


def test_a_file_keeps_all_rows_over_a_restart_and_never_reuses_an_id(opened: Opener, tmp_path: Path) -> None:
    first = opened(tmp_path / "a.db", max_rows=2)
    add_all(first, [visit() for _ in range(5)])
    first.close()
    second = opened(tmp_path / "a.db", max_rows=2)
    assert found(second) == [5, 4, 3, 2, 1]
    second._db.execute("DELETE FROM activity")
    assert add_all(second, [visit()]) == [6]


def test_two_stores_on_one_file_see_each_others_rows(opened: Opener, tmp_path: Path) -> None:
    one, two = opened(tmp_path / "a.db"), opened(tmp_path / "a.db")
    assert add_all(one, [visit()]) == [1]
    assert add_all(two, [visit(), visit()]) == [2, 3]
    assert add_all(one, [visit()]) == [4]
    assert found(one) == found(two) == [4, 3, 2, 1]


def test_what_was_added_survives_a_kill(opened: Opener, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    places = os.pathsep.join(entry for entry in sys.path if entry)
    child = subprocess.Popen(
        [sys.executable, "-c", WRITE_FOR_EVER, str(path)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": places},
    )
    assert child.stdout is not None
    try:
        told = [int(child.stdout.readline()) for _ in range(50)]
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait(timeout=30)
        child.stdout.close()
    assert told == list(range(1, 51))
    assert opened(path).page(ActivityQuery())["total"] >= 50


def test_a_batch_is_added_whole_or_not_at_all(opened: Opener, tmp_path: Path) -> None:
    store = opened(tmp_path / "activity.db")
    with pytest.raises(sqlite3.Error):
        store.add([values_of(visit()), ("a row that lacks columns",)])
    assert found(store) == []
    assert add_all(store, [visit()]) == [1]


def test_pages_divide_the_rows_that_match(opened: Opener) -> None:
    store = opened()
    add_all(store, [visit() for _ in range(4)])
    page = store.page(ActivityQuery(limit=3, page=2))
    assert (ids(page), page["page"], page["limit"], page["total"], page["total_pages"]) == ([1], 2, 3, 4, 2)
    beyond = store.page(ActivityQuery(page=9))
    assert (beyond["data"], beyond["page"], beyond["total"], beyond["total_pages"]) == ([], 9, 4, 1)
    assert found(store, page=10**18 - 1, limit=999) == []


def test_conditions_all_hold_together(opened: Opener) -> None:
    store = opened()
    add_all(
        store, [visit("m1", ended=10), visit("m2", ended=20), visit("m1", ended=30), visit("m2", ended=40)]
    )
    assert found(store, models=("m2",)) == [4, 2]
    assert found(store, models=("m1", "m2")) == [4, 3, 2, 1]
    assert found(store, models=("none",)) == []
    assert found(store, models=("\udcff",)) == []
    assert found(store, min_id=2, max_id=3) == [3, 2]
    assert found(store, start=20, end=30) == [3, 2]
    assert found(store, models=("m1",), max_id=2, start=10, end=10) == [1]


def test_equal_values_are_sorted_by_id_in_the_same_direction(opened: Opener) -> None:
    store = opened()
    add_all(store, [visit("b"), visit("a"), visit("b"), visit("a")])
    assert found(store, sort="model", descending=False) == [2, 4, 1, 3]
    assert found(store, sort="model") == [3, 1, 4, 2]


@pytest.mark.parametrize("sort", SORTS)
def test_each_sort_column_sorts(opened: Opener, sort: str) -> None:
    store = opened()
    usage = Usage(cache_tokens=1, draft_tokens=1, input_tokens=1, output_tokens=1, prompt_per_second=1.0)
    large = visit("z", ended=2e9, req_path="/z", status=500, usage=usage, duration_ms=99)
    add_all(store, [large, visit(ended=1.0)])
    same = {"resp_content_type", "gen_speed"}  # equal in both rows, so the id decides
    assert found(store, sort=sort, descending=False) == ([1, 2] if sort == "id" or sort in same else [2, 1])


def test_stats_of_an_empty_store_are_zero(opened: Opener) -> None:
    assert opened().stats(None) == {
        "total_requests": 0,
        "total_input_tokens": 0,
        "total_output_tokens": 0,
        "total_cache_tokens": 0,
        "prompt_histogram": None,
        "gen_histogram": None,
    }


def test_stats_sum_up_all_rows_or_one_models(opened: Opener) -> None:
    store = opened()
    for speed in (3.0, 5.0, 10.5, 50.0):
        usage = Usage(
            input_tokens=10, output_tokens=20, cache_tokens=2, prompt_per_second=speed, tokens_per_second=7.0
        )
        add_all(store, [visit("m1", usage=usage)])
    add_all(store, [visit("m2", status=500, usage=Usage(cache_tokens=-1, prompt_per_second=-1.0))])

    stats = store.stats(None)
    assert (stats["total_requests"], stats["total_input_tokens"], stats["total_output_tokens"]) == (5, 40, 80)
    assert stats["total_cache_tokens"] == 8
    prompt = stats["prompt_histogram"]
    assert (prompt["bins"], prompt["min"], prompt["max"]) == ([3, 0, 0, 0, 1], 3, 50)
    assert (prompt["binSize"], prompt["p50"]) == (pytest.approx(9.4), pytest.approx(7.75))
    assert (prompt["p95"], prompt["p99"]) == (pytest.approx(44.075), pytest.approx(48.815))
    assert stats["gen_histogram"] == {
        "bins": [4], "min": 7, "max": 7, "binSize": 0, "p50": 7, "p95": 7, "p99": 7
    }  # fmt: skip

    assert store.stats("m1") == {**stats, "total_requests": 4}
    failed = store.stats("m2")
    assert (failed["total_requests"], failed["total_cache_tokens"], failed["prompt_histogram"]) == (
        1,
        0,
        None,
    )
    assert store.stats("none")["total_requests"] == 0


@settings(deadline=None, max_examples=50)
@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=40))
def test_a_histogram_holds_each_value_once_and_its_median_is_the_median(speeds: list[float]) -> None:
    store = ActivityStore(None, 0)
    try:
        add_all(store, [visit(usage=Usage(tokens_per_second=speed)) for speed in speeds])
        shown = store.stats(None)["gen_histogram"]
    finally:
        store.close()
    assert sum(shown["bins"]) == len(speeds)
    assert (shown["min"], shown["max"]) == (min(speeds), max(speeds))
    assert shown["p50"] == pytest.approx(statistics.median(speeds))
    assert shown["p50"] <= shown["p95"] * (1 + 1e-9)


def good_rows(store: ActivityStore, *models: str, ids: range) -> list[tuple[str, str, float, str]]:
    return store.good_rows(models, ids, "waited")


def test_good_rows_are_those_of_the_models_that_ended_well_and_noted_what_is_asked_for(
    opened: Opener,
) -> None:
    store = opened()
    noted = {"waited": "1"}
    assert (store.newest(), good_rows(store, "m1", ids=range(1, 9))) == (0, [])
    add_all(
        store,
        [
            visit("m1", metadata=noted, duration_ms=1500),
            visit("m1", metadata=noted, status=204),
            visit("m1", metadata=noted, status=500),
            visit("m1", metadata=noted, error_msg="broke off"),
            visit("m1", metadata={"other": "waited"}),
            visit("m2", metadata=noted),
            visit("m1", metadata=noted),
        ],
    )

    assert store.newest() == 7
    assert good_rows(store, "m1", ids=range(1, 7)) == [
        ("m1", "/v1/chat/completions", 0.01, '{"waited":"1"}'),
        ("m1", "/v1/chat/completions", 1.5, '{"waited":"1"}'),
    ]
    assert [row[0] for row in good_rows(store, "m1", "m2", ids=range(2, 8))] == ["m1", "m2", "m1"]


def test_only_the_rows_that_are_asked_for_are_looked_at_whatever_indexes_there_are(
    opened: Opener, tmp_path: Path
) -> None:
    store = opened(tmp_path / "a.db")
    add_all(store, [visit() for _ in range(50)])

    plan = store._db.execute(f"EXPLAIN QUERY PLAN {_GOOD_ROWS}", ("[]", 1, 2, "x")).fetchall()

    assert plan[0][-1] == "SEARCH activity USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"
