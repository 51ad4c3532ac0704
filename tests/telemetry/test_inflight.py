from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twisted.internet.task import Clock

from llamaswap.http1.heads import Headers, RequestHead
from llamaswap.telemetry.inflight import Flight, InFlight, remote_ip

WALL = 1_795_954_062.605535


class Answer:
    """How far an answer is."""

    def __init__(self) -> None:
        self.passed_bytes = 0
        self.headers: Headers = ()

    def resp_headers(self) -> Headers:
        return self.headers


class Board:
    """A registry under a clock, with what its watcher was told."""

    def __init__(self, *, watched: bool = True) -> None:
        self.clock = Clock()
        self.clock.advance(100.0)
        self.registry = InFlight(self.clock, lambda: WALL)
        self.told: list[Mapping[str, Any]] = []
        self.cancelled: list[str] = []
        if watched:
            self.registry.watch(self.told.append)

    def enter(self, model: str = "m1", *, arrived: float = 100.0, headers: Headers = ()) -> Flight:
        return self.registry.enter(
            model=model,
            req_path="/v1/chat/completions",
            head=head(*headers),
            client_host="127.0.0.1",
            arrived=arrived,
            cancel=lambda: self.cancelled.append(model),
        )

    def follow(self, flight: Flight) -> Answer:
        answer = Answer()
        flight.follow(answer)
        return answer

    def operations(self) -> list[str]:
        return [change["operation"] for change in self.told]


def head(*headers: tuple[bytes, bytes]) -> RequestHead:
    return RequestHead(b"POST", b"/v1/chat/completions", (1, 1), headers)


def test_a_request_is_told_from_its_arrival_to_its_end() -> None:
    board = Board()
    flight = board.enter(arrived=99.5, headers=((b"x-session-id", b"s1"), (b"x-api-key", b"s3cret")))
    board.follow(flight).headers = ((b"Content-Type", b"application/json"), (b"Set-Cookie", b"s3cret"))
    flight.answered()
    flight.left()

    first, second, last = board.told
    assert first["operation"] == "upsert"
    request = first["request"]
    assert request.pop("timestamp").startswith("2026-11-29T")
    assert request == {
        "id": "1",
        "model": "m1",
        "req_path": "/v1/chat/completions",
        "method": "POST",
        "req_headers": {"X-Session-Id": "s1", "X-Api-Key": "[REDACTED]"},
        "remote_ip": "127.0.0.1",
        "resp_headers": {},
        "resp_bytes": 0,
        "elapsed_ms": 500,
    }
    assert second["request"]["resp_headers"] == {
        "Content-Type": "application/json",
        "Set-Cookie": "[REDACTED]",
    }
    assert last == {"operation": "remove", "id": "1"}


def test_bytes_that_flow_are_told_at_most_every_250_ms() -> None:
    board = Board()
    answer = board.follow(board.enter())
    for _ in range(100):
        answer.passed_bytes += 5
        board.clock.advance(0.01)

    upserts = [change["request"]["resp_bytes"] for change in board.told if change["operation"] == "upsert"]
    assert len(upserts) in (4, 5)
    assert upserts == sorted(set(upserts))


def test_a_request_whose_bytes_rest_is_not_told_again() -> None:
    board = Board()
    board.follow(board.enter()).passed_bytes = 1
    board.clock.advance(0.25)
    assert board.operations() == ["upsert", "upsert"]

    for _ in range(20):
        board.clock.advance(0.25)

    assert board.operations() == ["upsert", "upsert"]


def test_while_nobody_watches_no_timer_runs_and_nothing_is_made_up_for_telling() -> None:
    board = Board(watched=False)
    flight = board.enter()
    board.follow(flight).passed_bytes = 5
    flight.answered()

    assert board.clock.getDelayedCalls() == []
    assert board.registry.snapshot()["requests"][0]["resp_bytes"] == 5


def test_the_timer_is_one_for_all_and_ends_with_the_last_request_or_the_watcher() -> None:
    board = Board()
    flights = [board.enter() for _ in range(50)]
    assert len(board.clock.getDelayedCalls()) == 1

    board.registry.unwatch()
    assert board.clock.getDelayedCalls() == []

    board.registry.watch(board.told.append)
    for flight in flights:
        flight.left()
    board.clock.advance(0.25)
    assert board.clock.getDelayedCalls() == []


def test_a_watcher_that_comes_late_hears_of_bytes_that_flow_from_then_on() -> None:
    board = Board(watched=False)
    answer = board.follow(board.enter())
    answer.passed_bytes = 6
    board.registry.watch(board.told.append)
    answer.passed_bytes = 11
    board.clock.advance(0.25)

    assert [change["request"]["resp_bytes"] for change in board.told] == [11]


def test_the_snapshot_is_in_the_order_of_arrival_whoever_was_read_first() -> None:
    board = Board()
    board.enter("late", arrived=99.0)
    board.enter("early", arrived=98.0)
    board.enter("also late", arrived=99.0)

    models = [request["model"] for request in board.registry.snapshot()["requests"]]
    assert models == ["early", "late", "also late"]


def test_an_empty_snapshot_still_has_its_list() -> None:
    assert Board().registry.snapshot() == {"operation": "snapshot", "requests": []}


def test_ids_count_from_one_and_are_never_used_again() -> None:
    board = Board()
    board.enter().left()

    assert board.enter().id == "2"


def test_cancelling_calls_what_was_given_for_the_request() -> None:
    board = Board()
    board.enter("m1")
    board.enter("m2")

    assert board.registry.cancel("2")
    assert board.cancelled == ["m2"]


def test_all_can_be_cancelled_at_once() -> None:
    board = Board()
    board.enter("m1")
    board.enter("m2").left()
    board.enter("m3")

    board.registry.cancel_all()

    assert board.cancelled == ["m1", "m3"]


def test_a_request_that_is_over_cannot_be_cancelled() -> None:
    board = Board()
    board.enter().left()

    assert not board.registry.cancel("1")
    assert not board.registry.cancel("no number")
    assert board.cancelled == []


def test_a_request_ends_once() -> None:
    board = Board()
    flight = board.enter()
    flight.left()
    flight.left()
    flight.answered()

    assert board.operations() == ["upsert", "remove"]
    assert len(board.registry) == 0


def test_a_request_that_is_over_holds_its_answer_no_longer() -> None:
    board = Board()
    flight = board.enter()
    board.follow(flight).passed_bytes = 5
    flight.left()

    assert flight.resp_bytes == 0


def test_a_request_has_come_at_one_moment_however_often_it_is_shown() -> None:
    board = Board(watched=False)
    board.enter()
    first = board.registry.snapshot()["requests"][0]["timestamp"]
    board.clock.advance(10.0)  # and the wall stands still

    assert board.registry.snapshot()["requests"][0]["timestamp"] == first


def test_the_client_is_who_the_first_proxy_saw() -> None:
    assert remote_ip(head((b"X-Forwarded-For", b"203.0.113.9, 10.0.0.1")), "127.0.0.1") == "203.0.113.9"
    assert remote_ip(head((b"x-real-ip", b"203.0.113.8")), "127.0.0.1") == "203.0.113.8"
    assert remote_ip(head((b"X-Forwarded-For", b"")), "127.0.0.1") == "127.0.0.1"
    assert remote_ip(head(), "") == ""
