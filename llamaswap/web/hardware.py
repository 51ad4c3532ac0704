"""`/api/hardware`: what the daemon runs on."""

from __future__ import annotations

from llamaswap.errors import Refusal
from llamaswap.http1.exchange import Exchange
from llamaswap.telemetry.hardware import Hardware
from llamaswap.web.answers import answer_json


class HardwareUnknown(Refusal):
    """The machine could not be inspected."""

    status = 503

    def __init__(self) -> None:
        super().__init__("hardware detection unavailable")


async def show_hardware(exchange: Exchange, hardware: Hardware) -> None:
    """Answer `GET /api/hardware`, as soon as the inspection has come to its end.

    Raises:
        HardwareUnknown: it failed, or took too long.
    """
    snapshot = await hardware.snapshot()
    if snapshot is None:
        raise HardwareUnknown
    answer_json(exchange, snapshot)
