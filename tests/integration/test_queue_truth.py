"""The queue under everything that callers do at once, and whether what is told of it is true."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from copy import deepcopy
from pathlib import Path
from typing import Any, Self

import pytest

from support.real_daemon import Daemon, events, started, stub_config
from support.real_daemon_talk import Wire, chat_body, json_fields, request_bytes, until
from support.real_reload import reload

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"
BANDS = ("interactive", "normal", "batch")


def chat(model: str, priority: str | None = None, stub: dict[str, Any] | None = None, tag: str = "") -> bytes:
    """A chat request on the wire."""
    fields = {**json_fields(priority, stub, tag), "Connection": "close"}
    return request_bytes("POST", CHAT, chat_body(model), fields)


def arrivals(folder: Path) -> list[str]:
    """The tags of what reached a stub, in order."""
    return [note["tag"] for note in events(folder, "arrived") if note["tag"]]


@contextmanager
def busy(daemon: Daemon, model: str) -> Iterator[Wire]:
    """A job that holds the box until it is aborted."""
    with Wire(daemon.port) as job:
        job.send(chat(model, stub={"tokens": 3000, "gap": 0.02}))
        job.read_until(b'"n": 0')
        yield job


def test_case_048_requests_of_one_caller_start_in_the_order_in_which_he_sent_them(tmp_path: Path) -> None:
    config = stub_config(tmp_path, "a", "b")
    config["routing"]["scheduler"]["settings"] = {"serial": {"agingDivisor": 1}}
    dice = random.Random(48)
    sent = 0
    with started(tmp_path, config) as daemon, ExitStack() as open_ones:
        with busy(daemon, "b") as job:
            for number in range(120):
                others = [("b", "50", "x"), ("a", "-3", "x")] if dice.random() < 0.3 else []
                for model, priority, tag in (("a", None, f"mine {number}"), *others):
                    wire = open_ones.enter_context(Wire(daemon.port))
                    wire.send(chat(model, priority, tag=tag))
                    sent += 1
                    if number % 10 == 0 or others:
                        until(lambda sent=sent: daemon.waiting() == sent, "it to wait")  # type: ignore[misc]  # mypy cannot infer a lambda's default
                    else:
                        time.sleep(0.002)
            until(lambda: daemon.waiting() == sent, "all to wait")
            job.abort()
        until(lambda: len(daemon.rows()) == sent + 1, "all to be served", 30)
        mine = [int(tag.split()[1]) for tag in arrivals(tmp_path) if tag.startswith("mine")]
    assert mine == list(range(120))


def test_case_063_who_left_the_queue_is_never_served_and_his_row_says_how_long_he_waited(
    tmp_path: Path,
) -> None:
    with started(tmp_path, stub_config(tmp_path, "a")) as daemon, ThreadPoolExecutor(2) as pool:
        with busy(daemon, "a") as job, Wire(daemon.port) as middle:
            first = pool.submit(daemon.chat, "a", tag="first")
            until(lambda: daemon.waiting() == 1, "the first to wait")
            middle.send(chat("a", tag="middle"))
            until(lambda: daemon.waiting() == 2, "the middle one to wait")
            last = pool.submit(daemon.chat, "a", tag="last")
            until(lambda: daemon.waiting() == 3, "the last to wait")
            time.sleep(0.25)
            middle.abort()
            until(lambda: daemon.waiting() == 2, "the middle one to be gone")
            job.abort()
        assert [first.result(20).status, last.result(20).status] == [200, 200]
        assert arrivals(tmp_path) == ["first", "last"]
        (row,) = [row for row in daemon.rows(4) if row["resp_status_code"] == 499]
    assert int(row["metadata"]["serial_queue_wait_ms"]) >= 250
    assert "while queued" in row["error_msg"]


CALLERS, TURNS = 12, 7
ODD_PRIORITIES = [None, "interactive", "batch", "-98", "50", "2", str(2**63 - 1), str(-(2**63)), "1e9", "x"]


def one_of_many(daemon: Daemon, dice: random.Random, number: int) -> str:
    """One caller with a temper of his own; returns what became of it."""
    model, priority = dice.choice("abc"), dice.choice(ODD_PRIORITIES)
    temper = dice.choices(["stay", "leave", "reset", "crash"], [8, 2, 2, 1])[0]
    stub = {"stay": None, "crash": {"tokens": 3, "die": 1}}.get(temper, {"first": dice.uniform(0, 0.05)})
    with Wire(daemon.port) as wire, suppress(ConnectionError, AssertionError):
        wire.send(chat(model, priority, stub, f"{temper} {number}"))
        if temper in ("leave", "reset"):
            time.sleep(dice.uniform(0, 0.1))
            (wire.abort if temper == "reset" else wire.close)()
        else:
            return wire.read_to_end().split()[1].decode()
    return temper


@pytest.mark.parametrize("use", ["serial", "fifo"])
def test_case_102_every_request_is_in_one_place_at_a_time_whatever_callers_and_models_do(
    use: str, tmp_path: Path
) -> None:
    config = stub_config(tmp_path, "a", "b", "c", concurrencyLimit=CALLERS)
    config["routing"]["scheduler"]["use"] = use
    with started(tmp_path, config) as daemon:
        dices = [random.Random(102 + number) for number in range(CALLERS)]

        def caller(number: int) -> list[str]:
            return [one_of_many(daemon, dices[number], 100 * number + turn) for turn in range(TURNS)]

        with ThreadPoolExecutor(CALLERS) as pool:
            fates = Counter(fate for told in pool.map(caller, range(CALLERS)) for fate in told)
        until(lambda: daemon.waiting() == 0, "an empty queue")
        assert daemon.chat("a").status == 200, "and it goes on"
        until(lambda: counted(daemon) == len(daemon.rows()), "each to have one row")

        rows = daemon.rows()
        assert set(fates) <= {"200", "crash", "leave", "reset", "502"}, fates
        assert fates["200"] > CALLERS * TURNS / 3, fates
        dispatched = daemon.total("llamaswap_scheduler_dispatched_total")
        assert len(events(tmp_path, "arrived")) <= dispatched <= len(rows)
        assert len(rows) <= 1 + CALLERS * TURNS
        if use == "serial":
            assert sum("serial_score" in row["metadata"] for row in rows) == dispatched
            assert overlaps(tmp_path) == 0


def counted(daemon: Daemon) -> float:
    """How many requests have been dispatched or have left before, as metrics tell."""
    metrics = daemon.metrics()
    names = ("llamaswap_scheduler_dispatched_total", "llamaswap_scheduler_abandoned_total")
    return sum(value for sample, value in metrics.items() if sample.partition("{")[0] in names)


def overlaps(folder: Path) -> int:
    """How often a request reached a stub while another that stays was being answered."""
    notes = sorted(
        (note["at"], note["event"], note["request"])
        for kind in ("arrived", "answered")
        for note in events(folder, kind)
        if note["tag"].startswith("stay")
    )
    busy_with: set[str] = set()
    found = 0
    for _, event, request in notes:
        if event == "arrived":
            found += bool(busy_with)
            busy_with.add(request)
        else:
            busy_with.discard(request)
    return found


class Scrapes:
    """What `/metrics` said, twenty times a second."""

    def __init__(self, daemon: Daemon) -> None:
        self.samples: list[dict[str, float]] = []
        self._daemon = daemon
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._scrape, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(10)

    def _scrape(self) -> None:
        while not self._end.wait(0.05):
            self.samples.append(self._daemon.metrics())

    def of(self, name: str, band: str) -> list[float]:
        """One series of the scheduler's."""
        return [of_band(sample, name, band) for sample in self.samples]


def of_band(sample: dict[str, float], name: str, band: str) -> float:
    """One of the scheduler's metrics for one band."""
    return sample[f'llamaswap_scheduler_{name}{{band="{band}"}}']


PRIORITIES = ["100", "1000000", "50", "2", "0", "-98", "-100"]


def test_case_106_what_metrics_tell_of_the_queue_is_what_happens_in_it(tmp_path: Path) -> None:
    config = stub_config(tmp_path, "a", "slow", "broken", "gone")
    config["models"]["broken"]["cmd"] = "sh -c 'exit 3' --port ${PORT}"
    config["models"]["slow"]["cmd"] += " --load 0.5"
    left = deepcopy(config)
    del left["models"]["gone"]
    with started(tmp_path, config) as daemon, Scrapes(daemon) as scrapes, ExitStack() as open_ones:
        assert daemon.chat("a").status == 200
        with busy(daemon, "a") as job:
            kinds = ["a"] * 22 + ["abort"] * 20 + ["broken"] * 5 + ["gone"] * 2 + ["slow"]
            wires = []
            for number, kind in enumerate(kinds):
                wire = open_ones.enter_context(Wire(daemon.port))
                model = "a" if kind == "abort" else kind
                wire.send(chat(model, PRIORITIES[number % 7], tag=f"{kind} {number}"))
                wires.append((kind, wire))
            until(lambda: daemon.waiting() == 50, "fifty to wait")
            time.sleep(0.2)
            depth = {band: of_band(daemon.metrics(), "queue_depth", band) for band in BANDS}
            names = {name.partition("{")[0] for name in daemon.metrics()}
            for kind, wire in wires:
                if kind == "abort":
                    wire.abort()
            reload(daemon, tmp_path, left)
            until(lambda: daemon.waiting() == 28, "those who stay")
            job.abort()
        told = [(kind, wire.read_to_end().split()[1]) for kind, wire in wires if kind != "abort"]
        until(lambda: daemon.waiting() == 0, "an empty queue")
        time.sleep(0.2)
        rows, last = daemon.rows(52), daemon.metrics()

    assert depth == {"interactive": 15, "normal": 21, "batch": 14}
    assert told[:22] == [("a", b"200")] * 22
    assert sorted(told[22:27]) == [("broken", b"500")] * 2 + [("broken", b"503")] * 3
    assert told[27:] == [("gone", b"404")] * 2 + [("slow", b"200")]
    for band in BANDS:
        assert scrapes.of("queue_depth", band)[-1] == 0
        assert scrapes.of("queue_oldest_wait_seconds", band)[-1] == 0
        assert max(scrapes.of("queue_oldest_wait_seconds", band)) > 0.2
        growing = scrapes.of("dispatched_total", band)
        assert growing == sorted(growing)
    dispatched = sum(of_band(last, "dispatched_total", band) for band in BANDS)
    abandoned = sum(of_band(last, "abandoned_total", band) for band in BANDS)
    scored = [row for row in rows if "serial_score" in row.get("metadata", {})]
    assert dispatched == len(scored)
    assert abandoned == 20
    assert {name.partition("{")[0] for name in last} == names
    assert not any("1000000" in name or '"50"' in name for name in last)
    (slow,) = [row for row in rows if row["model"] == "slow"]
    assert int(slow["metadata"]["serial_load_ms"]) >= 500
    assert int(slow["metadata"]["serial_queue_wait_ms"]) + int(slow["metadata"]["serial_load_ms"]) <= (
        slow["duration_ms"] + 5
    )
