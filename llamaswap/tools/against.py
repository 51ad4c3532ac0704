"""What a reload would do to a running daemon, found out without reloading it.

The daemon shows digests of what its models were started with (`/api/launches`);
what they digest never leaves it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException, InvalidURL
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import OpenerDirector, ProxyHandler, Request, build_opener

from typing_extensions import override

from llamaswap.config.launch import fingerprints
from llamaswap.config.model import Config

PATH = "/api/launches"
PATIENCE = 10.0  # seconds
LOOPBACKS = ("127.0.0.1", "::1", "localhost")


class NotAsked(Exception):
    """The daemon could not be asked, or what it answered makes no sense."""


@dataclass(frozen=True, slots=True)
class Running:
    """What a daemon says of one of its models."""

    state: str
    port: int | None
    fingerprints: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of one model."""

    model: str
    what: str  # "comes", "goes", "stays", "changes" (it does not run) or "starts anew"
    why: str = ""

    @override
    def __str__(self) -> str:
        return f"{self.model}: {self.what}{f' ({self.why})' if self.why else ''}"


def ask(url: str, api_key: str = "") -> Mapping[str, Running]:
    """Ask a daemon what its models were started with.

    Raises:
        NotAsked: it does not answer, or not as it should.
    """
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    try:
        if not url.startswith(("http://", "https://")):
            raise NotAsked(f"{url!r} is no http or https URL")
        asked = Request(url.rstrip("/") + PATH, headers=headers)  # noqa: S310 - checked
        with _opener(url).open(asked, timeout=PATIENCE) as answer:
            return understand(json.load(answer))
    except (InvalidURL, URLError, OSError, ValueError) as error:
        raise NotAsked(f"{url}: {error}") from error
    except HTTPException as error:
        raise NotAsked(f"{url}: no answer in HTTP: {error!r}") from error


def _opener(url: str) -> OpenerDirector:
    """What asks: no proxy of the environment reaches this machine's loopback, or should see the key."""
    return build_opener(ProxyHandler({})) if urlsplit(url).hostname in LOOPBACKS else build_opener()


def understand(answer: Any) -> Mapping[str, Running]:
    """Read the answer of `/api/launches`; NotAsked if it is none."""
    try:
        models = answer["models"].items()
        return {name: Running(one["state"], one["port"], dict(one["fingerprints"])) for name, one in models}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise NotAsked(f"the answer makes no sense: {error!r}") from error


def ports_of(running: Mapping[str, Running]) -> dict[str, int]:
    """Return the ports that a reload would leave where they are."""
    return {name: model.port for name, model in running.items() if model.port is not None}


def changes(running: Mapping[str, Running], config: Config) -> Sequence[Change]:
    """Return what a reload with this configuration would do, model by model.

    Args:
        config: loaded with `ports_of(running)`, as a reload would.
    """
    names = sorted(running.keys() | config.models.keys())
    return [_change(name, running.get(name), config) for name in names]


def _change(name: str, now: Running | None, config: Config) -> Change:
    model = config.models.get(name)
    if now is None:
        return Change(name, "comes")
    runs = now.state != "stopped"
    if model is None:
        return Change(name, "goes", "stops when its last request has ended" if runs else "")
    wanted = fingerprints(model)
    differing = [key for key in wanted if now.fingerprints.get(key) != wanted[key]]
    if not differing:
        return Change(name, "stays", "keeps running" if runs else "")
    why = f"{', '.join(differing)} changed"
    if not runs:
        return Change(name, "changes", why)
    return Change(name, "starts anew", f"{why}; once its requests have ended")
