"""Where a child listens, and whether it says that it is ready.

Knows proxy URLs and one kind of question, a `GET` whose answer 200 means
yes; not what a child is nor what follows from the answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import quote, urlsplit

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from llamaswap.config.durations import duration_text
from llamaswap.config.model import ModelConfig
from llamaswap.config.urls import leads_nowhere, without_user

LOADING_STATUS = 503
"""What llama-server answers while it loads its model."""

READY_STATUS = 200
SHORTEST_PAUSE = 0.002  # seconds between two probes
LONGEST_PAUSE = 0.1
PAUSE_PER_ELAPSED = 0.01  # readiness is noticed within about 1 % of the load time
PATIENCE = 5.0  # seconds for the first silent probe, doubled after each
LOOPBACKS = ("127.0.0.1", "::1")

_PATH_SAFE = "/%:@!$&'()*+,;=~"
_INTERFACE = re.compile(r"%[^\]]*(?=\])")
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """Where a child's HTTP server is reached."""

    host: str  # a name or a literal, IPv6 without brackets
    port: int
    base_path: str  # "" or "/pre", never with a slash at its end
    authority: str  # text of a Host header
    secure: bool = False  # https
    query: str = ""  # goes before each request's own, as `api-version=1`

    def target(self, asked: bytes) -> bytes:
        """Return what a request for `asked`, a path and perhaps a query, has in its request line there."""
        if not self.query:
            return self.base_path.encode() + asked
        path, _, query = asked.partition(b"?")
        both = self.query.encode() + (b"&" + query if query else b"")
        return self.base_path.encode() + path + b"?" + both


@dataclass(frozen=True, slots=True)
class Question:
    """One probe: ask `host` for `target`."""

    address: Address
    target: str  # path and query, ready for the request line


@dataclass(frozen=True, slots=True)
class Answer:
    """What a probe found: a status, or why there was none."""

    status: int | None
    error: str = ""  # short, empty with a status


class Prober(Protocol):
    """Asks one question over the network."""

    def ask(self, question: Question, timeout: float) -> Deferred[Answer]:
        """Fire within `timeout` seconds; never fails, and can be cancelled."""
        ...


class NotReady(Exception):
    """The time to become ready was over; the text tells the last thing seen."""


def parse_proxy(proxy: str) -> Address:
    """Read a `proxy` URL.

    Raises:
        ValueError: it is not an http(s) URL with a host; one line.
    """
    if trouble := leads_nowhere(proxy):
        raise ValueError(f"proxy {without_user(proxy)!r} {trouble}")
    parts = urlsplit(proxy.strip())
    host = parts.hostname or ""  # it has one
    return Address(
        host=host.replace("%25", "%", 1) if ":" in host else host,
        port=_DEFAULT_PORTS[parts.scheme] if parts.port is None else parts.port,
        base_path=_quoted(parts.path.rstrip("/")),
        # An interface (`[fe80::1%25eth0]`) means something on this machine only.
        authority=_INTERFACE.sub("", parts.netloc.rpartition("@")[2]),
        secure=parts.scheme == "https",
        query=_quoted_query(parts.query),
    )


def probe_target(base_path: str, endpoint: str) -> str:
    """Join a `checkEndpoint` to the proxy's path; a host inside it is ignored.

    Raises:
        ValueError: the endpoint cannot be read as a path; one line.
    """
    try:
        parts = urlsplit(endpoint.strip())
    except ValueError as error:
        raise ValueError(f"checkEndpoint {endpoint!r} is not a path: {error}") from error
    path = f"{base_path}/{_quoted(parts.path.lstrip('/'))}"
    return f"{path}?{_quoted_query(parts.query)}" if parts.query else path


def candidates(address: Address) -> tuple[Address, ...]:
    """The addresses that one proxy URL may mean.

    `localhost` is both loopbacks: a child may listen on one of them only, and
    which one a resolver names first says nothing about that.  Inside TLS it
    stays a name, for which the child's certificate is, and both are tried.
    """
    if address.host.lower() != "localhost" or address.secure:
        return (address,)
    return tuple(_on(address, host) for host in LOOPBACKS)


async def wait_until_ready(
    model: ModelConfig, address: Address, prober: Prober, clock: IReactorTime
) -> Address:
    """Ask until the answer is 200, soon after the child could have said so.

    Args:
        model: gives the endpoint and the limit, counted from this call.

    Returns:
        The address that answered: traffic should go to the same one.

    Raises:
        NotReady: `healthCheckTimeout` is over.
    """
    target = probe_target(address.base_path, model.check_endpoint)
    hosts, patience, seen = candidates(address), PATIENCE, "nothing was seen"
    began, limit = clock.seconds(), float(model.health_check_timeout)
    turn = 0
    last: int | None = None
    while (elapsed := clock.seconds() - began) < limit:
        host = hosts[turn % len(hosts)]
        asked = clock.seconds()
        answer = await prober.ask(Question(host, target), min(patience, limit - elapsed))
        if answer.status == READY_STATUS:
            return host
        seen = _described(answer, seen)
        last = answer.status
        if clock.seconds() - asked >= patience:
            patience *= 2  # a slow answer is an answer, too
        turn += 1
        # A refusal on one loopback costs no pause before the other is asked.
        if turn % len(hosts) == 0 or answer.status is not None:
            spent = clock.seconds() - began
            await deferLater(clock, max(0.0, min(pause_after(spent), limit - spent)))
    words = f"health check timed out after {duration_text(limit)}"
    if last != LOADING_STATUS:  # a server that says it is loading needs no hint
        words += f": checkEndpoint {model.check_endpoint!r} {seen}"
    raise NotReady(words)


def pause_after(elapsed: float) -> float:
    """Seconds until the next probe, `elapsed` seconds into the load."""
    return min(LONGEST_PAUSE, max(SHORTEST_PAUSE, PAUSE_PER_ELAPSED * elapsed))


def _described(answer: Answer, before: str) -> str:
    if answer.status is not None:
        return f"last answered with status {answer.status}"
    # With two loopbacks, the status from one says more than the refusal from the other.
    return before if before.startswith("last answered") else f"did not answer: {answer.error}"


def _on(address: Address, host: str) -> Address:
    return replace(address, host=host)


def _quoted(path: str) -> str:
    return quote(path, safe=_PATH_SAFE)


def _quoted_query(query: str) -> str:
    return quote(query, safe=_PATH_SAFE + "?[]")
