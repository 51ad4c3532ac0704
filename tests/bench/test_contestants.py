"""Who a contestant is; starting real ones is left to the measurement itself."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import yaml

from bench.contestants import Contestant, direct, llamaswap_config, peers
from bench.launching import Failed
from llamaswap.config.load import load_text


def test_peers_are_named_with_their_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        ports = one.getsockname()[1], other.getsockname()[1]
        monkeypatch.setenv("BENCH_PEER", f"go={ports[0]},rust={ports[1]}")

        assert peers() == [Contestant("go", ports[0]), Contestant("rust", ports[1])]


def test_without_peers_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_PEER", "")

    assert peers() == []


@pytest.mark.parametrize("word", ["go", "go=", "=9000", "go=http"])
def test_a_peer_that_is_written_otherwise_is_refused(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_PEER", word)

    with pytest.raises(Failed, match="expected name=port"):
        peers()


def test_without_a_proxy_there_is_no_process_to_look_at() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert direct(server.getsockname()[1]).pids() == []


@pytest.mark.parametrize("scheduler", ["fifo", "serial"])
def test_the_daemon_understands_its_configuration(scheduler: str, tmp_path: Path) -> None:
    words = llamaswap_config(tmp_path, 9000, scheduler="fifo" if scheduler == "fifo" else "serial")

    config = load_text(yaml.safe_dump(words))

    assert list(config.models) == ["bench"]
    assert config.models["bench"].proxy == "http://127.0.0.1:9000"
