"""One `GET /` to a model that was just preloaded, because llama-swap sends one."""

from __future__ import annotations

from typing import TypeVar

import treq
from treq.client import HTTPClient
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.defer import TimeoutError as NoAnswer
from twisted.internet.error import ConnectError, ConnectingCancelledError, ConnectionClosed
from twisted.internet.error import TimeoutError as ConnectTimeout
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.web.client import Agent, ResponseFailed, ResponseNeverReceived

from llamaswap.leases import Lease
from llamaswap.processes.health import Address

GREETING_SECONDS = 10.0
"""How long a freshly loaded model may take to answer `GET /`, which warms nothing and proves little."""

T = TypeVar("T")

_log = Logger()


async def greet(lease: Lease, reactor: IReactorTime) -> None:
    """Greet the server of a lease; what it answers, or whether, does not matter.

    Raises:
        CancelledError: cancelled meanwhile.
    """
    client = HTTPClient(Agent(reactor, connectTimeout=GREETING_SECONDS))
    greeting = Deferred.fromCoroutine(_ask(client, _root_of(lease.server.address)))
    try:
        await greeting.addTimeout(GREETING_SECONDS, reactor, _late)
    except ConnectingCancelledError as error:
        raise CancelledError from error
    except (
        ConnectError,
        ConnectionClosed,
        ConnectTimeout,
        NoAnswer,
        ResponseFailed,
        ResponseNeverReceived,
        ValueError,  # a host that the client below cannot spell, although the model was reached there
    ) as error:
        _log.warn(
            "preload.greeting_failed model={model} why={why}", model=lease.server.model.id, why=str(error)
        )


def _late(result: T | Failure, seconds: float) -> T:
    """Call it late whatever being cancelled made of it: a connection under way fails in a way of its own."""
    if isinstance(result, Failure):
        raise NoAnswer(f"no answer within {seconds:g} s") from result.value
    return result


async def _ask(client: HTTPClient, url: str) -> None:
    await treq.content(await client.get(url))


def _root_of(address: Address) -> str:
    host = f"[{address.host}]" if ":" in address.host else address.host
    scheme = "https" if address.secure else "http"
    return f"{scheme}://{host}:{address.port}{address.target(b'/').decode()}"
