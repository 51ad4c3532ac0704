from __future__ import annotations

from llamaswap.http1.heads import Headers
from llamaswap.scheduling.vocabulary import Band
from llamaswap.telemetry.bulletin import MOST_GATHERED
from support.telemetry_board import Listener, Newsroom


class FiveBytes:
    """How far an answer is."""

    passed_bytes = 5

    def resp_headers(self) -> Headers:
        return ()


def test_a_newcomer_is_told_what_is_true_in_the_order_that_clients_expect() -> None:
    room = Newsroom()
    room.proxy.append(b"[INFO] before\n")
    room.upstream.append(b"loaded\n")
    room.profile = "day"

    listener = Listener(room.bulletin)

    assert listener.take() == [
        ("logData", {"source": "proxy", "data": "[INFO] before\n"}),
        ("logData", {"source": "upstream", "data": "loaded\n"}),
        ("modelStatus", [{"id": "m1", "state": "stopped"}]),
        ("uiConfig", {"activity": {"session_id": ["X-Session-ID"]}}),
        ("profileChanged", {"active": "day"}),
        ("inflight", {"operation": "snapshot", "requests": []}),
        (
            "queueStatus",
            {
                "bands": {band.value: {"depth": 0, "oldest_wait_ms": 0} for band in Band},
                "running": [],
                "paused": [],
            },
        ),
    ]


def test_empty_histories_are_told_too() -> None:
    listener = Listener(Newsroom().bulletin)

    assert [data["data"] for kind, data in listener.take("logData")] == ["", ""]


def test_the_chunks_of_one_turn_come_as_one_message() -> None:
    room = Newsroom()
    listener = Listener(room.bulletin)
    listener.take()
    for word in (b"one ", b"two ", b"three\n"):
        room.upstream.append(word)
    assert listener.take() == []

    room.clock.advance(0)

    assert listener.take() == [("logData", {"source": "upstream", "data": "one two three\n"})]


def test_a_character_cut_in_two_comes_whole() -> None:
    room = Newsroom()
    listener = Listener(room.bulletin)
    listener.take()
    room.upstream.append("grü".encode()[:3])
    room.clock.advance(0)
    room.upstream.append("ü".encode()[1:] + b"n")
    room.clock.advance(0)

    assert "".join(data["data"] for _, data in listener.take()) == "grün"


def test_a_flood_within_one_turn_is_passed_on_before_it_grows_large() -> None:
    room = Newsroom()
    listener = Listener(room.bulletin)
    listener.take()

    room.upstream.append(b"x" * (MOST_GATHERED + 1))

    assert len(listener.take()) == 1
    room.clock.advance(0)
    assert listener.take() == []


def test_what_was_logged_before_a_change_is_told_before_it() -> None:
    room = Newsroom()
    listener = Listener(room.bulletin)
    listener.take()
    room.proxy.append(b"[INFO] starting m1\n")
    room.bulletin.state_changed("m1", "starting")

    assert [kind for kind, _ in listener.take()] == ["logData", "modelStatus"]


def test_a_newcomer_hears_no_line_twice() -> None:
    room = Newsroom()
    first = Listener(room.bulletin)
    first.take()
    room.proxy.append(b"once\n")

    second = Listener(room.bulletin)
    room.clock.advance(0)

    assert [data["data"] for _, data in second.take("logData")] == ["once\n", ""]
    assert [data["data"] for _, data in first.take("logData")] == ["once\n"]


def test_no_step_of_a_model_is_skipped_even_when_it_has_moved_on() -> None:
    room = Newsroom()
    listener = Listener(room.bulletin)
    listener.take()
    room.states["m1"] = "ready"
    room.bulletin.state_changed("m1", "starting")
    room.bulletin.state_changed("m1", "ready")

    states = [data[0]["state"] for _, data in listener.take("modelStatus")]
    assert states == ["starting", "ready"]


def test_a_change_of_the_profile_is_told_with_the_models() -> None:
    room = Newsroom()
    listener = Listener(room.bulletin)
    listener.take()
    room.profile = "night"
    room.bulletin.profile_changed()

    told = listener.take()
    assert told[0] == ("profileChanged", {"active": "night"})
    assert told[1][0] == "modelStatus"


def test_a_written_row_is_told_by_its_id() -> None:
    room = Newsroom()
    listener = Listener(room.bulletin)
    listener.take()
    room.bulletin.row_written(37)

    assert listener.take() == [("activity", {"id": 37})]


def test_requests_under_way_are_told_as_they_come_and_go() -> None:
    room = Newsroom()
    listener = Listener(room.bulletin)
    listener.take()
    flight = room.flight()
    flight.follow(FiveBytes())
    room.clock.advance(0.25)
    flight.left()

    changes = [data for _, data in listener.take("inflight")]
    assert [change["operation"] for change in changes] == ["upsert", "upsert", "remove"]
    assert changes[1]["request"]["resp_bytes"] == 5


def test_the_queue_is_told_when_it_changed_and_at_most_four_times_a_second() -> None:
    room = Newsroom()
    listener = Listener(room.bulletin)
    listener.take()
    told = 0
    for _ in range(100):
        room.bulletin.queue_changed()
        room.clock.advance(0.01)
        told += len(listener.take("queueStatus"))

    assert 4 <= told <= 5


def test_the_last_change_of_the_queue_is_never_kept_back_for_good() -> None:
    room = Newsroom()
    listener = Listener(room.bulletin)
    room.bulletin.queue_changed()
    room.clock.advance(0)
    listener.take()
    room.bulletin.queue_changed()
    room.waits(Band.BATCH, oldest_wait=1.5)
    room.clock.advance(0.25)

    ((_, status),) = listener.take("queueStatus")
    assert status["running"] == ["m1"]
    assert status["bands"]["batch"] == {"depth": 1, "oldest_wait_ms": 1500}


def test_who_comes_and_goes_and_what_is_loaded_counts_as_a_change_of_the_queue() -> None:
    room = Newsroom()
    listener = Listener(room.bulletin)
    listener.take()
    room.flight()
    room.clock.advance(0)
    assert len(listener.take("queueStatus")) == 1

    room.clock.advance(1)
    listener.take()
    room.bulletin.state_changed("m1", "starting")
    room.clock.advance(0)
    assert len(listener.take("queueStatus")) == 1


def test_while_nobody_listens_nothing_is_made_up_and_no_timer_runs() -> None:
    room = Newsroom()
    listener = Listener(room.bulletin)
    room.flight()
    room.proxy.append(b"gathered")
    room.bulletin.queue_changed()
    assert room.clock.getDelayedCalls()

    listener.stop()
    listener.take()
    room.proxy.append(b"for nobody")
    room.bulletin.state_changed("m1", "starting")
    room.bulletin.profile_changed()
    room.bulletin.row_written(1)
    room.bulletin.queue_changed()
    room.flight()

    assert room.clock.getDelayedCalls() == []
    assert listener.take() == []
    assert room.bulletin.listeners == 0


def test_stopping_to_listen_twice_takes_nobody_else_away() -> None:
    room = Newsroom()
    first, second = Listener(room.bulletin), Listener(room.bulletin)
    first.stop()
    first.stop()
    second.take()
    room.bulletin.row_written(1)

    assert second.take() == [("activity", {"id": 1})]


def test_a_listener_that_comes_back_is_not_told_what_was_gathered_before() -> None:
    room = Newsroom()
    Listener(room.bulletin).stop()
    room.proxy.append(b"in between\n")
    again = Listener(room.bulletin)
    room.clock.advance(0)

    assert [data["data"] for _, data in again.take("logData")] == ["in between\n", ""]
