"""A day of swaps in four minutes: does a daemon's memory, or anything else of it, grow?

python -m bench.endurance
python -m bench.endurance --minutes 1 --plots /tmp

Time limits are made short: a TTL of one second, for six minutes of a usual day.  Pings come about as often
as the TTL runs out, so that both meet all the time; others ask for streams, and leave some of them; two
clients read the events, one of which does not.  What is sampled is the daemon's own: anonymous memory
(swapped out or not), descriptors and threads, and how many requests wait.
"""

from __future__ import annotations

import argparse
import shlex
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.accounting import PROC
from bench.contestants import start_llamaswap
from bench.endurance_traffic import Traffic, fill, traffic
from bench.figures import Curve
from bench.launching import free_ports, progress
from bench.talk import get

DAY = 24 * 3600.0
SECONDS = 240.0  # that stand for it
PLOTS = Path("docs/plots")
EVERY = 1.0  # seconds between two samples
WARM_UP = 0.25  # of the time, in which the allocator finds its size
FILL = 4000  # requests
MODELS = "ABC"
TTL = 1  # seconds

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A daemon at one moment."""

    at: float  # seconds since the beginning
    memory: int  # bytes: anonymous, swapped out or not
    descriptors: int
    threads: int
    waiting: int  # requests
    swaps: int  # since its start
    answered: int  # requests, since the beginning


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """What became more from the first quarter after the warm-up to the last one; medians of each."""

    memory: float  # bytes
    descriptors: float
    threads: float
    latency: float  # seconds, of the slowest one in ten
    most_waiting: int  # requests, at any moment


def config(folder: Path) -> dict[str, Any]:
    """Three models that evict each other; two expire, one of those dies slowly."""
    words = {"A": "", "B": "--term-lag 0.2", "C": "--load 0.1"}
    stub = shlex.join([sys.executable, "-m", "llamaswap.stub", "--port"])
    servers = {
        name: {
            "cmd": f"{stub} ${{PORT}} --alias {name} --vram {folder}/vram 1G {words[name]}",
            "proxy": "http://127.0.0.1:${PORT}",
            **({"ttl": TTL} if name in "AB" else {}),
        }
        for name in MODELS
    }
    return {
        "startPort": free_ports(len(MODELS)),
        "models": servers,
        "routing": {"scheduler": {"use": "serial"}},
        "store": {"path": str(folder / "activity.db")},
        "metricsMaxInMemory": 500,
        "captureBuffer": 1,
    }


def endure(
    port: int, pid: int, seconds: float, *, filled: int = FILL, every: float = EVERY
) -> tuple[list[Sample], Traffic]:
    """Keep a daemon with models A, B and C busy, and look at it every so often.

    Args:
        port: where it listens.
        pid: its process.
        filled: requests before that, after which captures, rows and logs are as large as they get.
        every: seconds between two looks.
    """
    samples: list[Sample] = []
    fill(port, MODELS[-1], filled)
    began = time.monotonic()
    with traffic(port, MODELS, TTL) as running:
        while (left := began + seconds - time.monotonic()) > 0:
            running.assert_well()
            time.sleep(min(every, left))
            samples.append(_sample(port, pid, time.monotonic() - began, running))
    return samples, running


def growth(samples: Sequence[Sample], running: Traffic) -> Growth:
    """Compare the first quarter after the warm-up with the last one."""
    warm = samples[int(len(samples) * WARM_UP) :]
    quarter = max(1, len(warm) // 4)
    early, late = warm[:quarter], warm[-quarter:]
    span = late[-1].at - warm[0].at

    def more(value: Callable[[Sample], int]) -> float:
        return float(statistics.median(map(value, late)) - statistics.median(map(value, early)))

    slow = [
        running.percentile(0.9, since, since + span / 4) for since in (warm[0].at, late[-1].at - span / 4)
    ]
    return Growth(
        memory=more(lambda sample: sample.memory),
        descriptors=more(lambda sample: sample.descriptors),
        threads=more(lambda sample: sample.threads),
        latency=slow[1] - slow[0],
        most_waiting=max(sample.waiting for sample in samples),
    )


def curve(samples: Sequence[Sample]) -> Curve:
    """All of it over time, in hours of the day that it stands for."""
    first, last = samples[0], samples[-1]
    hours = DAY / SECONDS / 3600
    shown = {
        "memory, MiB": [sample.memory / MIB for sample in samples],
        "descriptors": [float(sample.descriptors) for sample in samples],
        "threads": [float(sample.threads) for sample in samples],
        "waiting requests": [float(sample.waiting) for sample in samples],
    }
    return Curve(
        name="endurance",
        title=f"{last.answered:,} requests and {last.swaps:,} loads in {last.at:.0f} s".replace(",", " "),
        x_label=f"hours, if a TTL of {TTL} s stands for {hours * 60:.0f} min",
        y_label="MiB, or number",
        series={
            name: list(zip(((sample.at - first.at) * hours for sample in samples), values, strict=True))
            for name, values in shown.items()
        },
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.endurance",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=SECONDS / 60)
    parser.add_argument("--plots", type=Path, default=PLOTS, help="where the picture goes")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with start_llamaswap(folder, config(folder)) as daemon:
            samples, running = endure(daemon.port, daemon.pids()[0], options.minutes * 60)
    grown = growth(samples, running)
    progress(f"{curve(samples).title}; {running.fates}")
    things = f"descriptors {grown.descriptors:+g}, threads {grown.threads:+g}"
    progress(f"memory {grown.memory / MIB:+.2f} MiB, {things}")
    from bench.plots import draw  # matplotlib is needed for this only

    for path in draw([curve(samples)], options.plots):
        progress(str(path))
    return 0


def _sample(port: int, pid: int, at: float, running: Traffic) -> Sample:
    lines = (line.split(":") for line in (PROC / str(pid) / "status").read_text().splitlines())
    status = {line[0]: line[1].split()[0] for line in lines if line[1].split()}
    metrics = get(port, "/metrics")[1].decode().splitlines()

    def total(metric: str) -> int:
        return int(sum(float(line.rpartition(" ")[2]) for line in metrics if line.startswith(metric)))

    return Sample(
        at=at,
        memory=1024 * (int(status["RssAnon"]) + int(status["VmSwap"])),
        descriptors=sum(1 for _ in (PROC / str(pid) / "fd").iterdir()),
        threads=int(status["Threads"]),
        waiting=total("llamaswap_scheduler_queue_depth{"),
        swaps=total("llamaswap_swaps_total{"),
        answered=running.fates.total(),
    )


if __name__ == "__main__":
    sys.exit(main())
