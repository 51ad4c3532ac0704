"""WebSocket clients: what they say goes both ways, frame by frame, and costs nobody his turn."""

from __future__ import annotations

import os
import signal
import struct
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from socket import SO_LINGER, SOL_SOCKET

import pytest
from websockets import Subprotocol
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from support.real_daemon import Daemon, started
from support.real_daemon_talk import until
from support.real_odd import odd_config

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    config = odd_config("a", "b", "comfy", "drained")
    config["models"]["comfy"] = {**config["models"]["comfy"], "compat": {"ignoreWebsockets": True}}
    config["models"]["drained"] = {**config["models"]["drained"], "compat": {"drainOnDisconnect": True}}
    with started(tmp_path_factory.mktemp("sockets"), config) as daemon:
        yield daemon


def socket(daemon: Daemon, path: str, subprotocols: Sequence[Subprotocol] | None = None) -> ClientConnection:
    """Open a WebSocket through the daemon."""
    talk: ClientConnection = connect(
        f"ws://127.0.0.1:{daemon.port}{path}",
        compression=None,
        max_size=None,
        proxy=None,
        open_timeout=20,
        close_timeout=5,
        subprotocols=subprotocols,
    )
    return talk


@contextmanager
def frozen(daemon: Daemon, model: str) -> Iterator[None]:
    """A model whose server does nothing meanwhile, although it is there."""
    pids = daemon.model_processes(model)
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@pytest.mark.parametrize("path", ["/upstream/a/ws", "/upstream/a/ws?clientId=%41", "/props?model=a"])
def test_text_and_bytes_of_every_size_come_back(path: str, daemon: Daemon) -> None:
    with socket(daemon, path) as talk:
        for said in (
            "",
            "hello",
            "grüß dich 🦙",
            "x" * 126,
            "y" * 70_000,
            bytes(range(256)),
            bytes(2_000_000),
        ):
            talk.send(said)
            assert talk.recv(10) == said
        talk.ping().wait(5)


def test_the_protocol_that_a_client_and_its_upstream_agree_on_is_theirs(daemon: Daemon) -> None:
    with socket(daemon, "/upstream/a/ws", [Subprotocol("graphql-ws"), Subprotocol("other")]) as talk:
        assert talk.subprotocol == "graphql-ws"


def test_what_the_upstream_ends_is_ended_with_its_own_words(daemon: Daemon) -> None:
    with socket(daemon, "/upstream/a/ws") as talk:
        talk.send("bye")
        with pytest.raises(ConnectionClosed) as told:
            talk.recv(10)
    assert told.value.rcvd is not None
    assert told.value.rcvd.code == 1000


def test_a_socket_to_a_resident_model_is_no_job_and_no_row(daemon: Daemon) -> None:
    assert daemon.chat("a").status == 200
    dispatched, rows = daemon.total("llamaswap_scheduler_dispatched_total"), len(daemon.rows())
    with socket(daemon, "/upstream/a/ws") as talk:
        talk.send("one")
        assert talk.recv(10) == "one"
        assert daemon.chat("a").status == 200

        assert daemon.total("llamaswap_scheduler_dispatched_total") == dispatched + 1
    assert len(daemon.rows(rows + 1)) == rows + 1


def test_a_socket_that_a_model_ignores_never_starts_it(daemon: Daemon) -> None:
    with pytest.raises(InvalidStatus) as told:
        socket(daemon, "/upstream/comfy/ws")
    assert told.value.response.status_code == 409
    assert "comfy" not in daemon.running()

    assert daemon.chat("comfy").status == 200
    with socket(daemon, "/upstream/comfy/ws") as talk:
        talk.send("now")
        assert talk.recv(10) == "now"


@pytest.mark.parametrize("model", ["a", "comfy"])
def test_a_swap_ends_the_sockets_of_the_model_that_goes(model: str, daemon: Daemon) -> None:
    """Under serial a socket to a resident model is no job, so it keeps nobody else waiting either."""
    assert daemon.chat(model).status == 200
    with socket(daemon, f"/upstream/{model}/ws") as talk:
        assert daemon.chat("b").status == 200
        with pytest.raises(ConnectionClosed):
            talk.recv(10)


def test_a_socket_whose_client_left_ends_its_job_also_where_answers_are_drained(daemon: Daemon) -> None:
    """With `drainOnDisconnect`, as image generators have it, which talk over sockets above all."""
    with socket(daemon, "/upstream/drained/ws") as talk:
        talk.send("hello")
        assert talk.recv(10) == "hello"
        assert [job["model"] for job in daemon.get("/api/queue").json["jobs"]] == ["drained"]
        talk.socket.close()
        until(lambda: not daemon.get("/api/queue").json["jobs"], "the end of the job")
    assert daemon.chat("b").status == 200


def test_a_socket_whose_client_left_while_its_server_takes_nothing_ends_its_job(daemon: Daemon) -> None:
    assert daemon.chat("a").status == 200
    with socket(daemon, "/upstream/b/ws") as talk:
        talk.send("hello")
        assert talk.recv(10) == "hello"
        assert [job["model"] for job in daemon.get("/api/queue").json["jobs"]] == ["b"]
        with frozen(daemon, "b"):
            talk.socket.settimeout(0.5)
            with suppress(TimeoutError):
                while True:
                    talk.socket.send(bytes(1 << 20))
            talk.socket.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
            talk.socket.close()
            until(lambda: not daemon.get("/api/queue").json["jobs"], "the end of the job")
    assert daemon.chat("a").status == 200


def test_a_socket_to_a_name_that_is_no_model_is_refused(daemon: Daemon) -> None:
    with pytest.raises(InvalidStatus) as told:
        socket(daemon, "/upstream/none/ws")
    assert told.value.response.status_code == 404


def test_fifty_sockets_are_open_at_once_and_leave_nothing_open(daemon: Daemon) -> None:
    assert daemon.chat("a").status == 200
    before = daemon.sockets()
    with ExitStack() as open_ones:
        talks = [open_ones.enter_context(socket(daemon, "/upstream/a/ws")) for _ in range(50)]
        for number, talk in enumerate(talks):
            talk.send(str(number))
        assert [talk.recv(10) for talk in talks] == [str(number) for number in range(50)]
    until(lambda: daemon.sockets() <= before + 2, f"{daemon.sockets()} sockets to be {before} again")
