"""What the parts of one daemon share, whatever its configuration says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from llamaswap.activity.journal import Journal, JournalReactor
from llamaswap.http1.client import ClientReactor
from llamaswap.inherited import SocketReactor
from llamaswap.metering.captures import Captures
from llamaswap.processes.probing import ProbeReactor
from llamaswap.processes.spawning import ChildReactor
from llamaswap.proxying.peer import Abroad
from llamaswap.telemetry.hardware import Hardware
from llamaswap.telemetry.inflight import InFlight
from llamaswap.telemetry.loglines import Logbooks, LogLines
from llamaswap.telemetry.sampler import Sampler
from llamaswap.telemetry.sensing import SensingReactor


class DaemonReactor(ChildReactor, ProbeReactor, ClientReactor, JournalReactor, SensingReactor, SocketReactor):
    """What it takes to run the whole daemon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What a generation takes from the service that it lives in; it outlives the generation."""

    reactor: DaemonReactor
    books: Logbooks
    journal: Journal
    captures: Captures
    inflight: InFlight
    hardware: Hardware
    sampler: Sampler | None  # None where the monitor was switched off at the start
    wall: Callable[[], float]  # unix seconds
    abroad: Abroad = field(default_factory=Abroad)
    mark: bytes = b"llamaswap"  # this daemon's name in Via; another's must differ
    lines: LogLines | None = None  # takes the access log's lines; None: Twisted's log does
