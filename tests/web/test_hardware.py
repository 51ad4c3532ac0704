from __future__ import annotations

import json

from twisted.internet.task import Clock
from twisted.logger import capturedLogs

from llamaswap.errors import Refusal
from llamaswap.http1.exchange import Exchange
from llamaswap.telemetry.hardware import Hardware, JsonObject
from llamaswap.telemetry.sources import SourceFailed
from llamaswap.web.answers import refuse
from llamaswap.web.hardware import show_hardware
from support.http1_wires import Clients, End
from support.telemetry_sources import Threads


def ask(hardware: Hardware) -> End:
    """Ask for the page."""

    async def handle(exchange: Exchange) -> None:
        try:
            await show_hardware(exchange, hardware)
        except Refusal as refusal:
            refuse(exchange, refusal)

    end = Clients(handle).connect()
    end.send(b"GET /api/hardware HTTP/1.1\r\nHost: h\r\n\r\n")
    return end


def test_who_asks_before_the_inspection_has_ended_is_answered_when_it_has() -> None:
    threads = Threads()
    threads.hangs = True
    hardware = Hardware(lambda: {"cpu": {}}, run=threads.run, clock=Clock(), wall=lambda: 0.0)
    hardware.start()
    end = ask(hardware)
    assert end.take() == b""

    threads.come_back()

    head, _, body = end.take().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    assert json.loads(body)["cpu"] == {}


def test_an_inspection_that_failed_is_unavailable() -> None:
    def fail() -> JsonObject:
        raise SourceFailed("mismatch")

    hardware = Hardware(fail, run=Threads().run, clock=Clock(), wall=lambda: 0.0)
    with capturedLogs():
        hardware.start()

    answer = ask(hardware).take()
    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b'"message":"hardware detection unavailable"' in answer
