"""Watching on a real reactor: samplers with real threads, and event streams over real sockets."""

from __future__ import annotations

from collections.abc import Callable

import psutil
import pytest
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.internet.task import deferLater

from llamaswap.http1.exchange import Exchange
from llamaswap.http1.server import ServerFactory
from llamaswap.telemetry.sensing import make_hardware, make_sampler
from llamaswap.web.events import MOST_BYTES, Events
from support.http1_sockets import DEADLINE, Talk, on_sockets, reactor, until
from support.telemetry_board import Newsroom

pytestmark = pytest.mark.integration

WALL = 1_800_000_000.0
ROW = '{"type":"activity","data":"{\\"id\\":%d}"}'


async def look_until(condition: Callable[[], object]) -> None:
    """Wait for something that nothing announces."""
    began = reactor().seconds()
    while not condition():
        assert reactor().seconds() - began < DEADLINE, "it never came"
        await deferLater(reactor(), 0.02, lambda: None)


@on_sockets
async def test_this_machine_is_sampled_on_threads() -> None:
    sampler = make_sampler(reactor(), lambda: WALL, 0.1)
    sampler.start()
    try:
        await look_until(sampler.history)
    finally:
        sampler.stop()

    host = sampler.history()[0].host
    assert host is not None
    assert len(host.cpu_percent) == psutil.cpu_count()


@on_sockets
async def test_this_machine_is_inspected_on_a_thread() -> None:
    hardware = make_hardware(reactor(), lambda: WALL)
    hardware.start()
    snapshot = await hardware.snapshot().addTimeout(DEADLINE, reactor())

    assert snapshot is not None
    assert snapshot["schema_version"] == 1
    assert snapshot["memory"]["capacity_bytes"] > 0


@on_sockets
async def test_a_reader_that_rests_costs_a_bounded_buffer_and_catches_up_when_it_goes_on() -> None:
    room = Newsroom()
    events = Events(room.bulletin)

    async def handle(exchange: Exchange) -> None:
        events.stream(exchange)

    port = reactor().listenTCP(0, ServerFactory(handle, reactor()), interface="127.0.0.1")
    talk = await connect(port.getHost().port)
    try:
        talk.transport.write(b"GET /api/events HTTP/1.1\r\nHost: h\r\n\r\n")
        await until(lambda: b"queueStatus" in talk.received, talk)
        talk.transport.pauseProducing()
        (reader,) = events._open
        told = 0
        while not reader.lost:
            room.bulletin.row_written(told)
            room.upstream.append(b"x" * 70_000)
            told += 1
        assert sum(map(len, reader._waiting)) <= MOST_BYTES

        del talk.received[:]
        room.states["m1"] = "ready"
        talk.transport.resumeProducing()
        await until(lambda: b"queueStatus" in talk.received, talk)
        assert b'{\\"id\\":\\"m1\\",\\"state\\":\\"ready\\"}' in talk.received

        room.bulletin.row_written(987654)
        await until(lambda: (ROW % 987654).encode() in talk.received, talk)
    finally:
        events.end_streams()
        talk.transport.abortConnection()
        await maybeDeferred(port.stopListening)
        await until(lambda: talk.lost_at, talk)


async def connect(port: int) -> Talk:
    """Connect to a port of this machine."""
    endpoint = TCP4ClientEndpoint(reactor(), "127.0.0.1", port)
    connected: Deferred[Talk] = connectProtocol(endpoint, Talk())
    return await connected
