"""Cases from the field: a long day leaves the daemon as small as it was."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from support.field import MIB, Field
from support.field_load import busy_day
from support.field_scale import Scale
from support.real_daemon_talk import Wire, request_bytes
from support.real_events import EventSource

pytestmark = pytest.mark.integration

GROWTH = (
    5 * MIB
)  # that all requests after the warm-up may cost together; a leak of 60 bytes a request is more
SWAPPING = 50  # each so manieth round has swaps in it, which take most of the time


@pytest.mark.lasts(seconds=120)
def test_case_094_a_long_day_leaves_memory_descriptors_and_threads_as_they_were(
    tmp_path: Path, scale: Scale
) -> None:
    """A reader of events and one of the log never read: as with llama-swap they stay, at a bounded cost."""
    rounds, size = scale(100, 3), scale(1000, 150)
    warm = 10 if scale.soak else 1
    config = {"captureBuffer": 1, "metricsMaxInMemory": 200}
    with (
        Field(tmp_path, {"A": "", "B": ""}, config=config, spare_memory=20 * MIB) as field,
        EventSource(field.daemon.port) as one,
        EventSource(field.daemon.port) as other,
        Wire(field.daemon.port) as deaf,
        Wire(field.daemon.port) as deaf_to_logs,
    ):
        deaf.send(request_bytes("GET", "/api/events"))
        deaf_to_logs.send(request_bytes("GET", "/logs/stream/proxy"))
        fates: Counter[str] = Counter()
        use: list[tuple[int, int, int]] = []
        for number in range(rounds):
            for source in (one, other):
                source.events.clear()  # or we would grow ourselves, and do little but look for garbage
            swap = 0.05 if number % SWAPPING == 1 else 0.0
            fates += busy_day(field.daemon.port, "AB", size, seed=10 * number, swap=swap)
            field.until(lambda: field.daemon.waiting() == 0, "an empty queue")
            use.append(in_use(field))

        assert set(fates) == {"200", "left"}, fates
        assert fates["left"] > rounds * size / 20
        assert field.starts() > rounds * size * 0.01 / SWAPPING
        last, settled = use[-1], use[warm - 1]
        assert last[0] - settled[0] < GROWTH, [f"{memory / MIB:.1f}" for memory, _, _ in use]
        assert last[1] <= settled[1] + 4, [descriptors for _, descriptors, _ in use]
        assert last[2] <= settled[2] + 1, [threads for _, _, threads in use]
        assert len(field.log("events.reader_lags")) <= 1 + rounds // 10
        assert not one.ended.is_set(), one.why
        assert not other.ended.is_set(), other.why
        for source in (one, other):
            source.wait("activity", lambda _: True)
        assert field.get("/api/metrics/activity").json["total"] == 200


def in_use(field: Field) -> tuple[int, int, int]:
    """Bytes of its own memory, descriptors and threads."""
    threads = len(list(Path(f"/proc/{field.daemon.pid}/task").iterdir()))
    return field.daemon.memory(), len(field.daemon.descriptors()), threads
