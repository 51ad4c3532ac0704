"""What the clients of the event stream read, however slowly."""

from __future__ import annotations

from twisted.logger import capturedLogs

from llamaswap.config.model import Capabilities, Config, ModelConfig, PeerConfig
from llamaswap.http1.exchange import Exchange
from llamaswap.web.events import MOST_BYTES, MOST_MESSAGES, ON_THE_WIRE, Events, model_rows
from support.http1_wires import Clients, End
from support.telemetry_board import Newsroom, read_events


class Stand:
    """The event stream of a newsroom, over connections in memory."""

    def __init__(self) -> None:
        self.room = Newsroom()
        self.events = Events(self.room.bulletin)
        self.clients = Clients(self._handle, self.room.clock)

    async def _handle(self, exchange: Exchange) -> None:
        self.events.stream(exchange)

    def connect(self, method: str = "GET") -> End:
        """Ask for the stream."""
        end = self.clients.connect()
        end.send(f"{method} /api/events HTTP/1.1\r\nHost: h\r\n\r\n".encode())
        return end


def unchunked(data: bytes) -> bytes:
    """Return the body of a chunked response, as far as it goes."""
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        body += data[: int(size, 16)]
        data = data[int(size, 16) + 2 :]
    return body


def started(end: End) -> tuple[bytes, bytes]:
    """Return the head and the body so far."""
    head, _, body = end.take().partition(b"\r\n\r\n")
    return head, unchunked(body)


def test_the_stream_begins_with_what_is_true_and_goes_on_with_what_changes() -> None:
    stand = Stand()
    end = stand.connect()
    head, body = started(end)

    lines = head.split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 200 OK"
    for line in (
        b"Content-Type: text/event-stream",
        b"Cache-Control: no-cache",
        b"X-Content-Type-Options: nosniff",
        b"X-Accel-Buffering: no",
        b"Transfer-Encoding: chunked",
    ):
        assert line in lines
    kinds = [kind for kind, _ in read_events(body)]
    assert kinds == [
        "logData",
        "logData",
        "modelStatus",
        "uiConfig",
        "profileChanged",
        "inflight",
        "queueStatus",
    ]

    stand.room.bulletin.row_written(1)
    assert read_events(unchunked(end.take())) == [("activity", {"id": 1})]


def test_a_client_that_leaves_is_forgotten() -> None:
    stand = Stand()
    stand.connect().leave()

    assert stand.room.bulletin.listeners == 0
    stand.events.end_streams()


def test_ending_the_streams_ends_them_properly() -> None:
    stand = Stand()
    ends = [stand.connect(), stand.connect()]
    stand.events.end_streams()

    assert all(end.take().endswith(b"0\r\n\r\n") for end in ends)
    assert stand.room.bulletin.listeners == 0


def test_a_look_at_the_head_does_not_listen() -> None:
    stand = Stand()
    end = stand.connect("HEAD")

    assert end.take().startswith(b"HTTP/1.1 200 OK\r\n")
    assert stand.room.bulletin.listeners == 0


def test_a_reader_that_never_reads_costs_a_bounded_buffer_and_one_warning() -> None:
    stand = Stand()
    lazy, keen = stand.connect(), stand.connect()
    started(keen)
    lazy.stall()
    with capturedLogs() as events:
        for row_id in range(20_000):
            stand.room.bulletin.row_written(row_id)

    assert len(read_events(unchunked(keen.take()))) == 20_000
    (reader, _) = stand.events._open
    assert len(reader._waiting) <= MOST_MESSAGES
    assert reader.lost > 10_000
    said = [event for event in events if "reader_lags" in (event.get("log_format") or "")]
    assert len(said) == 1


def test_large_messages_fill_the_buffer_by_their_bytes() -> None:
    stand = Stand()
    lazy = stand.connect()
    lazy.stall()
    for _ in range(100):
        stand.room.upstream.append(b"x" * 100_000)

    (reader,) = stand.events._open
    assert sum(map(len, reader._waiting)) <= MOST_BYTES
    assert reader._stream.buffered <= ON_THE_WIRE + 200_000


def test_a_reader_that_has_caught_up_is_told_the_state_of_things_anew() -> None:
    stand = Stand()
    slow = stand.connect()
    started(slow)
    slow.stall()
    for row_id in range(10_000):
        stand.room.bulletin.row_written(row_id)
    stand.room.states["m1"] = "ready"
    stand.room.bulletin.state_changed("m1", "ready")  # lost
    slow.go_on()

    told = read_events(unchunked(slow.take()))
    assert told[-5] == ("modelStatus", [{"id": "m1", "state": "ready"}])
    assert [kind for kind, _ in told[-5:]] == [
        "modelStatus",
        "uiConfig",
        "profileChanged",
        "inflight",
        "queueStatus",
    ]
    rows = [data["id"] for kind, data in told if kind == "activity"]
    assert rows == list(range(len(rows)))

    stand.room.bulletin.row_written(77)
    assert read_events(unchunked(slow.take())) == [("activity", {"id": 77})]


def test_a_short_delay_loses_nothing_and_keeps_the_order() -> None:
    stand = Stand()
    slow = stand.connect()
    started(slow)
    slow.stall()
    for row_id in range(1000):
        stand.room.bulletin.row_written(row_id)
    slow.go_on()

    assert read_events(unchunked(slow.take())) == [("activity", {"id": row_id}) for row_id in range(1000)]


def test_the_list_of_models_is_what_llama_swap_shows() -> None:
    able = Capabilities(inputs=("text", "image"), outputs=("text",), tools=True, context=4096)
    config = Config(
        models={
            "b": ModelConfig(id="b", unlisted=True),
            "m1": ModelConfig(id="m1", name=" N ", description=" D ", aliases=("nick",), capabilities=able),
        },
        peers={"p1": PeerConfig(id="p1", models=("y", "x"))},
    )

    assert model_rows(config, {"b": "stopped", "m1": "ready"}) == [
        {"id": "b", "name": "", "description": "", "state": "stopped", "unlisted": True, "peerID": ""},
        {
            "id": "m1",
            "name": " N ",
            "description": " D ",
            "state": "ready",
            "unlisted": False,
            "peerID": "",
            "aliases": ["nick"],
            "capabilities": {"vision": True, "function_calling": True},
            "context_length": 4096,
        },
        {"id": "p1/x", "name": "", "description": "", "state": "", "unlisted": False, "peerID": "p1"},
        {"id": "p1/y", "name": "", "description": "", "state": "", "unlisted": False, "peerID": "p1"},
    ]
