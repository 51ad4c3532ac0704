"""A crowd in a process of its own, with the proxies' processor for itself.

python -m bench.crowd_process --waiting 1000 --models 50 --loaded 50    # how many dispatches, on stdin
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from twisted.logger import globalLogPublisher

from bench.crowd import Crowd, Pace
from bench.launching import Failed, end, proxy_processors
from llamaswap.telemetry.loglines import Logbooks, LogLines

WARM = 200  # dispatches before any that count


class Worker:
    """A crowd in another process.

    Args:
        process: runs this module.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def pace(self, dispatches: int) -> Pace:
        """Let it dispatch so often."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{dispatches}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise Failed("a crowd has dispersed; what it said is above")
        return Pace(**json.loads(answer))


@contextmanager
def working(waiting: int, models: int, loaded: int) -> Iterator[Worker]:
    """A crowd in a process of its own, assembled and warm; see `Crowd` for the numbers."""
    numbers = [f"--waiting={waiting}", f"--models={models}", f"--loaded={loaded}"]
    words = [sys.executable, "-m", "bench.crowd_process", *numbers]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        os.sched_setaffinity(process.pid, proxy_processors())
        worker = Worker(process)
        worker.pace(WARM)
        yield worker
    finally:
        if process.stdin:
            process.stdin.close()
        end(process)


def main() -> int:
    """Answer each line of stdin; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--waiting", type=int, required=True)
    parser.add_argument("--models", type=int, required=True)
    parser.add_argument("--loaded", type=int, required=True)
    options = parser.parse_args()
    globalLogPublisher.addObserver(LogLines(Logbooks("proxy").proxy, "info"))
    crowd = Crowd(options.models, options.loaded, options.waiting)
    for line in sys.stdin:
        print(json.dumps(asdict(crowd.pace(int(line)))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
