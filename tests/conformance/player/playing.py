"""A case, step by step, on a server that runs.

Knows the keys of a step and the order of things; bytes are `talking`'s business, opinions `judging`'s.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from conformance.player.answers import NotHttp
from conformance.player.corpus import Case, accepted
from conformance.player.judging import judge, judge_upstream
from conformance.player.servers import Server
from conformance.player.talking import talk

SHORTEST = 0.2
"""Seconds that an answer gets even when the case has run out of time."""

BETWEEN_TRIES = 0.05
AFTER_ANSWER = 0.01
"""Seconds, so that the stub's own note of the request is there."""


def play(server: Server, case: Case, limit: float) -> list[str]:
    """Play a case and return what is wrong, nothing when it passes.

    Args:
        server: running, with the case's configuration.
        case: as it stands in the corpus.
        limit: seconds for it, unless it has its own.
    """
    steps = case["steps"]
    together = 1 + sum(step.get("times", 1) for step in steps if step.get("concurrent"))
    with ThreadPoolExecutor(together) as pool:
        return _Performance(server, case, limit, pool).run()


class _Performance:
    """One case on one server."""

    def __init__(self, server: Server, case: Case, limit: float, pool: ThreadPoolExecutor) -> None:
        self._server = server
        self._steps: list[dict[str, Any]] = server.filled(case["steps"])
        self._accepted = [server.filled(accepted(case, number)) for number in range(len(self._steps))]
        self._deadline = time.monotonic() + case.get("timeout_s", limit)
        self._pool = pool
        self._background: list[Future[str]] = []

    def run(self) -> list[str]:
        """Every step in order, then those that are still under way."""
        wrong = []
        for number, step in enumerate(self._steps):
            if time.monotonic() > self._deadline:
                wrong.append(f"step {number}: out of time")
                break
            wrong.append(self._take(number, step))
        self._join()
        wrong += [one.result() if one.done() else "a concurrent step did not end" for one in self._background]
        return [text for text in wrong if text]

    def _take(self, number: int, step: Mapping[str, Any]) -> str:
        time.sleep(step.get("wait_ms", 0) / 1000)
        if step.get("join"):
            self._join()
        for name, text in step.get("write", {}).items():
            self._server.write(name, text)
        if "signal" in step:
            self._server.send_signal(step["signal"])
        if step.get("saw_all"):
            return self._judge_everything(number)
        if "send" not in step:
            return ""
        if not step.get("concurrent"):
            return self._finish(number, step, len(self._server.saw()))
        self._background += [
            self._pool.submit(self._finish, number, step, None) for _ in range(step.get("times", 1))
        ]
        return ""

    def _join(self) -> None:
        wait(self._background, max(SHORTEST, self._deadline - time.monotonic()))

    def _judge_everything(self, number: int) -> str:
        wants, saw = self._accepted[number], self._server.saw()
        found = [judge_upstream(want.get("upstream_saw", []), saw) for want in wants]
        return f"step {number}: {found[0]}" if all(found) else ""

    def _finish(self, number: int, step: Mapping[str, Any], since: int | None) -> str:
        """Send until the answer is right, once if the step does not say how long."""
        stop = min(self._deadline, time.monotonic() + step.get("poll_ms", 0) / 1000)
        while True:
            wrong = self._try(number, step, since)
            if not wrong or time.monotonic() >= stop:
                return f"step {number}: {wrong}" if wrong else ""
            time.sleep(BETWEEN_TRIES)

    def _try(self, number: int, step: Mapping[str, Any], since: int | None) -> str:
        wants = self._accepted[number]
        try:
            answer = talk(self._server.port, step, max(SHORTEST, self._deadline - time.monotonic()))
        except (OSError, NotHttp) as error:
            return f"{type(error).__name__}: {error}"
        saw = None
        if since is not None and any("upstream_saw" in want for want in wants):
            time.sleep(AFTER_ANSWER)
            saw = self._server.saw(since)
        found = [judge(want, answer, saw) for want in wants]
        return found[0] if all(found) else ""
