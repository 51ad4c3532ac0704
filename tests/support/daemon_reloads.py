"""Daemons whose configuration changes while they run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from support.daemon import ServiceRig
from support.dispatch_rig import nothing_goes_wrong
from support.web_talk import Talk

Rigs = Callable[..., ServiceRig]

PORTS = {"a": 9001, "b": 9002, "c": 9003}


def fleet(*, use: str = "{use: serial}", more: str = "", **commands: str) -> str:
    """A configuration with these models.

    Args:
        use: the scheduler.
        more: further lines at the top.
        commands: of each model, and what else its mapping holds behind a comma.
    """
    models = "".join(
        f'  {name}: {{proxy: "http://127.0.0.1:{PORTS[name]}", cmd: {rest}}}\n'
        for name, rest in commands.items()
    )
    return f"{more}\nrouting: {{scheduler: {use}}}\nmodels:\n{models}"


SIDE_BY_SIDE = "groups: {all: {swap: false, members: [a, b]}}"

BOTH = fleet(a="serve a", b="serve b")


@contextmanager
def started_rigs(patch: pytest.MonkeyPatch) -> Iterator[Rigs]:
    """Makes started services without threads; all are stopped in the end, and nothing went wrong."""
    made: list[ServiceRig] = []

    def make(config: str = BOTH, **options: Any) -> ServiceRig:
        made.append(ServiceRig(patch, config, **{"threads": False, **options}))
        made[-1].start()
        return made[-1]

    with nothing_goes_wrong():
        yield make
        for rig in made:
            rig.finish_stopping()


def half_sent(rig: ServiceRig, path: str, model: str, more: str = "") -> Talk:
    """A request that is there but for the last byte of its body."""
    body = json.dumps({"model": model, "stream": True}).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n{more}"
    return rig.send(head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body[:-1])


def the_rest(asked: Talk) -> None:
    """The last byte arrives."""
    asked.end.send(b"}")
