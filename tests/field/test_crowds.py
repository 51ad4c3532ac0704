"""Cases from the field: many at once, many that leave, and what is over a limit."""

from __future__ import annotations

import statistics
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from support.field import MIB, Field, stub
from support.field_call import Call
from support.field_client import Leave
from support.field_scale import Scale
from support.real_daemon import LLAMA_SWAP
from support.real_sizes import forget_peak, peak

pytestmark = pytest.mark.integration

EMBEDDINGS = "/v1/embeddings"
WAYS: tuple[Leave, ...] = ("fin", "rst")

FIFO = {"routing": {"scheduler": {"use": "fifo"}}}
EXAMPLE = Path(__file__).parents[2] / "etc" / "config.example.yaml"


def statuses(calls: list[Call]) -> list[int]:
    """The status of each, once its answer is whole."""
    assert all(call.wait().complete for call in calls)
    return [call.status for call in calls]


def test_case_049_a_crowd_that_leaves_the_queue_blocks_nobody_and_starts_nothing(
    tmp_path: Path, scale: Scale
) -> None:
    crowd = scale(500, 60)
    with Field(tmp_path, dict.fromkeys("ABC", "")) as field:
        running = field.send("A", stub={"hang": True})
        field.until(lambda: field.records("arrived"), "its arrival")
        gone = [field.send("B", tag="gone") for _ in range(crowd)]
        field.until(lambda: field.daemon.waiting() == crowd, "all to wait")

        for call, how in zip(gone, cycle(WAYS), strict=False):
            call.leave(how)
        field.until(lambda: field.daemon.waiting() == 0, "none to wait", 1.0)
        following = field.send("C")
        field.until(lambda: field.daemon.waiting() == 1, "C to wait", 1.0)

        running.leave()
        assert following.wait().wrong() == ""
        assert field.starts("B") == 0
        assert [note["alias"] for note in field.records("arrived")] == ["A", "C"]
        rows = [row for row in field.rows(crowd + 2) if row["model"] == "B"]
        assert [row["resp_status_code"] for row in rows] == [499] * crowd
        assert all("while queued" in row["error_msg"] for row in rows)


def test_case_052_and_053_whoever_is_within_the_limit_waits_and_who_is_not_is_told_what_to_do(
    tmp_path: Path, scale: Scale
) -> None:
    """The words of the refusal are llama-swap's; how long the queue is, `/metrics` tells."""
    crowd, small = scale(300, 40), 50
    with Field(tmp_path, {"A": "", "few": stub(concurrencyLimit=10)}) as field:
        assert field.chat("few", path=EMBEDDINGS, input="x").status == 200
        running = field.send("few", path=EMBEDDINGS, input="x", stub={"hang": True})
        field.until(lambda: len(field.records("arrived")) == 2, "its arrival")
        limited = [field.prepare("few", path=EMBEDDINGS, input="x") for _ in range(crowd)]
        unlimited = [field.prepare("A", path=EMBEDDINGS, input="x") for _ in range(small)]
        field.together([*limited, *unlimited])
        field.until(lambda: sum(call.over for call in limited) == crowd - 9, "the refusals")
        running.leave()

        assert statuses(unlimited) == [200] * small
        assert sorted(statuses(limited)) == [200] * 9 + [429] * (crowd - 9)
        refused = [call for call in limited if call.status == 429]
        assert all(call.headers["retry-after"] == "1" for call in refused)
        assert all(call.json["error"]["code"] == "concurrency_limit" for call in refused)
        assert field.starts() == 2


@pytest.mark.soak(seconds=5)
def test_case_053_under_fifo_ten_is_the_limit_as_it_is_for_llama_swap_and_the_example_says_so(
    tmp_path: Path,
) -> None:
    with Field(
        tmp_path, {"A": "--load 0.3", "many": stub("--load 0.3", concurrencyLimit=50)}, config=FIFO
    ) as field:
        by_default = [field.prepare("A") for _ in range(50)]
        enough = [field.prepare("many") for _ in range(50)]
        field.together([*by_default, *enough])

        assert statuses(enough) == [200] * 50
        assert sorted(statuses(by_default)) == [200] * 10 + [429] * 40

    entry = EXAMPLE.read_text().partition("concurrencyLimit:")[0].splitlines()[-3:]
    assert "10 under the fifo scheduler, no limit under serial" in " ".join(entry)


# --- hundreds ----------------------------------------------------------------------------------------------

BODY_BYTES = 64 * 1024
COST_BYTES = 3 * BODY_BYTES  # of memory that such a request may take while it waits


def limited_to(descriptors: int) -> tuple[str, ...]:
    """The daemon's command, with so many descriptors at most."""
    return ("/bin/sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh", *LLAMA_SWAP)


def burst(field: Field, size: int) -> tuple[list[Call], list[Call]]:
    """Requests of 64 KiB for three models, one in twenty of them urgent: those, and all."""
    filler: dict[str, Any] = {"filler": "x" * BODY_BYTES}
    urgent = [field.prepare("ABC"[at % 3], priority="interactive", **filler) for at in range(size // 20)]
    usual = [field.prepare("ABC"[at % 3], priority="batch", **filler) for at in range(size - len(urgent))]
    return urgent, [*usual, *urgent]


@pytest.mark.lasts(seconds=30)
def test_case_055_hundreds_at_once_are_all_served_and_the_urgent_ones_first(
    tmp_path: Path, scale: Scale
) -> None:
    size, limit = (800, 1024) if scale.soak else (160, 200)
    with Field(tmp_path, dict.fromkeys("ABC", ""), command=limited_to(limit)) as field:
        before = forget_peak(field.daemon.pid)
        urgent, everybody = burst(field, size)
        field.together(everybody)
        assert statuses(everybody) == [200] * size

        usual = statistics.median(call.took for call in everybody if call not in urgent)
        assert statistics.median(call.took for call in urgent) < usual / 2
        assert peak(field.daemon.pid) - before < size * COST_BYTES + 16 * MIB

        # What a crowd has needed the allocator keeps; a second one must not need more.
        field.base()
        again = burst(field, size)[1]
        field.together(again)
        assert statuses(again) == [200] * size


def test_case_055_more_connections_than_there_are_descriptors_wait_and_leave_enough_for_the_work(
    tmp_path: Path,
) -> None:
    limit, size = 96, 130
    with Field(tmp_path, dict.fromkeys("ABC", ""), command=limited_to(limit)) as field:
        calls = [field.prepare("ABC"[at % 3]) for at in range(size)]
        field.together(calls)

        assert [call.wait().wrong() for call in calls] == [""] * size
        assert field.starts() < 12
        assert len(field.log("doors.crowded")) == 1


@pytest.mark.soak(seconds=5)
def test_case_055_who_cannot_be_connected_for_want_of_descriptors_is_told_so(tmp_path: Path) -> None:
    """Half of them are for clients; where each needs a second one at once, they may not be enough."""
    model = stub(concurrencyLimit=200)
    with Field(tmp_path, {"A": model}, config=FIFO, command=limited_to(96)) as field:
        assert field.chat("A").wrong() == ""
        calls = [field.prepare("A", stub={"first": 1.0}) for _ in range(100)]
        field.together(calls)

        for call in calls:
            call.wait()
        answered = [call for call in calls if call.status]
        assert set(statuses(answered)) <= {200, 502}
        assert {call.wrong() for call in answered if call.status == 200} == {""}
        assert all(
            "Too many open files" in call.json["error"]["message"] for call in answered if call.status == 502
        )
        unheard = [call for call in calls if not call.status]
        assert not any(call.body for call in unheard)
        assert len(field.rows(1 + len(answered))) == 1 + len(answered), "who was let in was answered"
        for call in unheard:
            call.excuse = "turned away without a word: no descriptor was left to accept it"
        assert field.chat("A").wrong() == ""
