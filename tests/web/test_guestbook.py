"""What is left of a call: a row, perhaps a capture, counters, and nothing in the list of who is here."""

from __future__ import annotations

from dataclasses import dataclass

from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs

from llamaswap.errors import ShuttingDown, UnknownModel
from llamaswap.http1.exchange import Exchange
from llamaswap.http1.heads import ResponseHead
from llamaswap.metering.captures import MIB, Captures
from llamaswap.rendering import render
from llamaswap.scheduling.vocabulary import Band, BandView, QueueView
from llamaswap.telemetry.inflight import InFlight
from llamaswap.telemetry.metrics import Metrics
from llamaswap.web.guestbook import GuestBook
from llamaswap.web.visit import Visit
from support.http1_wires import Clients
from support.web_daemon import NOON, NotedRows

EMPTY = QueueView(bands={band: BandView(depth=0, oldest_wait=0.0) for band in Band}, jobs=())
ANSWER = ResponseHead(200, b"OK", (1, 1), ((b"Content-Type", b"application/json"),))


@dataclass(frozen=True)
class Caller:
    """A guest."""

    name: str = "m"
    target: bytes = b"/v1/completions?x=1"
    row: bool = True
    listed: bool = True
    selector: str = ""


class House:
    """A guest book, and everything that it writes into."""

    def __init__(self, captures: int = MIB) -> None:
        self.told: list[tuple[int, bool, int]] = []  # row, whether its capture was there, how many rows were
        self.exchanges: list[Exchange] = []
        self.clients = Clients(self._keep)
        self.captures = Captures(captures)
        self.journal = NotedRows(self._told)
        self.inflight = InFlight(self.clients.clock, lambda: NOON)
        self.metrics = Metrics(lambda: EMPTY, dict, ["m"])
        self.book = GuestBook(
            journal=self.journal,
            captures=self.captures,
            inflight=self.inflight,
            metrics=self.metrics,
            clock=self.clients.clock,
            wall=lambda: NOON,
        )
        self.cancelled = 0

    async def _keep(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        await Deferred[None]()

    def _told(self, row_id: int) -> None:
        self.told.append((row_id, row_id in self.captures, len(self.journal.rows)))

    def welcome(self, caller: Caller, path: str = "/v1/completions?x=1") -> Visit:
        """A request comes in."""
        end = self.clients.connect()
        end.send(f"POST {path} HTTP/1.1\r\nHost: h\r\nCookie: c\r\nContent-Length: 0\r\n\r\n".encode())
        return self.book.welcome(self.exchanges[-1], caller, cancel=self._cancel)

    def _cancel(self) -> None:
        self.cancelled += 1

    def count(self, sample: str) -> bytes:
        """The value of a counter."""
        lines = self.metrics.render().splitlines()
        return next(line.rsplit(b" ", 1)[1] for line in lines if line.startswith(sample.encode()))


def answered(visit: Visit, body: bytes = b"{}") -> None:
    """An upstream answers it."""
    visit.sent((b'{"model":"m"}',))
    visit.witness.head(ANSWER)
    visit.witness.data(body)
    visit.answered(ANSWER, "")


def test_a_row_its_capture_and_the_word_of_it_come_in_this_order() -> None:
    house = House()
    visit = house.welcome(Caller())
    answered(visit)
    assert house.told == []

    house.book.farewell(visit)

    assert house.told == [(1, True, 1)]
    shown = house.captures.show(1)
    assert shown is not None
    assert shown["req_path"] == "/v1/completions"
    assert shown["req_headers"]["Cookie"] == "[REDACTED]"


def test_a_row_says_how_long_it_took_and_when_it_ended() -> None:
    house = House()
    house.clients.clock.advance(5.0)
    visit = house.welcome(Caller(selector="any"))
    house.clients.clock.advance(1.25)
    answered(visit)

    house.book.farewell(visit)

    (row,) = house.journal.rows
    assert (row.model, row.req_path, row.duration_ms, row.ended) == ("m", "/v1/completions", 1250, NOON)
    assert row.metadata == {"selector": "any"}


def test_who_is_to_leave_no_row_leaves_none_but_is_counted() -> None:
    house = House()
    visit = house.welcome(Caller(row=False))
    answered(visit)

    house.book.farewell(visit)

    assert (house.journal.rows, house.told) == ([], [])
    assert house.count('llamaswap_requests_total{code="200",model="m"}') == b"1.0"


def test_what_is_no_model_is_counted_as_unknown() -> None:
    house = House()
    visit = house.welcome(Caller(name="ghost"))
    refusal = UnknownModel()
    visit.refused(refusal, render(refusal))

    house.book.farewell(visit)

    assert house.count('llamaswap_requests_total{code="404",model="unknown"}') == b"1.0"
    assert house.journal.rows[0].model == "ghost"


def test_a_failure_is_logged_once_with_its_reason_and_a_success_is_not() -> None:
    house = House()
    with capturedLogs() as events:
        refused, fine = house.welcome(Caller()), house.welcome(Caller())
        refusal = ShuttingDown()
        refused.refused(refusal, render(refusal))
        house.book.farewell(refused)
        answered(fine)
        house.book.farewell(fine)

    (event,) = [event for event in events if "inference.failed" in (event.get("log_format") or "")]
    assert (event["status"], event["error"]) == (503, "llamaswap is shutting down")


def test_a_guest_is_listed_until_the_visit_is_over() -> None:
    house = House()
    visit = house.welcome(Caller())

    (shown,) = house.inflight.snapshot()["requests"]
    assert (shown["model"], shown["req_path"]) == ("m", "/v1/completions")
    assert house.inflight.cancel("1")
    assert house.cancelled == 1
    visit.over()

    assert len(house.inflight) == 0
    assert not house.inflight.cancel("1")


def test_who_is_not_to_be_listed_is_not() -> None:
    house = House()

    house.welcome(Caller(listed=False)).over()

    assert house.inflight.snapshot()["requests"] == []


def test_the_list_shows_paths_as_asked_for_but_below_upstream_as_the_model_sees_them() -> None:
    house = House()
    house.welcome(Caller(target=b"/chat/completions"), path="/v/chat/completions")
    house.welcome(Caller(target=b"/v1/completions"), path="/upstream/m/v1/completions")

    shown = [request["req_path"] for request in house.inflight.snapshot()["requests"]]

    assert shown == ["/v/chat/completions", "/v1/completions"]


def test_without_room_for_captures_nothing_is_recorded() -> None:
    house = House(captures=0)
    visit = house.welcome(Caller())
    answered(visit)

    house.book.farewell(visit)

    assert house.told == [(1, False, 1)]


def test_a_capture_that_does_not_fit_is_logged_and_the_row_stays() -> None:
    house = House(captures=200)
    visit = house.welcome(Caller())
    answered(visit, bytes(range(256)) * 2)

    with capturedLogs() as events:
        house.book.farewell(visit)

    assert house.told == [(1, False, 1)]
    assert [event["row"] for event in events if "too_large" in (event.get("log_format") or "")] == [1]
