"""Cases from the field: how many models may be there at once, how long, and on which addresses."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from support.field import Field, stub
from support.field_ports import free_ports
from support.field_scale import Scale
from support.field_watch import Watch
from support.real_daemon import LLAMA_SWAP
from support.real_daemon_talk import ask

pytestmark = pytest.mark.integration

FIVE = "ABCDE"
SIDE_BY_SIDE = {"all": {"swap": False, "exclusive": False, "members": ["A", "B", "C", "D"]}}


def two_at_once() -> dict[str, Any]:
    """Any two of five may be loaded together, and the embedder beside any of them."""
    sets = {f"{one}{other}": f"{one} & {other} & embed" for one, other in combinations(FIVE, 2)}
    return {"use": "matrix", "settings": {"matrix": {"sets": sets}}}


@pytest.mark.lasts(seconds=100)
@pytest.mark.parametrize("use", ["serial", pytest.param("fifo", marks=pytest.mark.soak(seconds=60))])
def test_case_100_never_more_models_are_there_than_may_be(use: str, tmp_path: Path, scale: Scale) -> None:
    dice = random.Random(100)
    models = {name: stub(vram=False, concurrencyLimit=50) for name in (*FIVE, "embed")}
    config = {"routing": {"router": two_at_once(), "scheduler": {"use": use}}}
    with Field(tmp_path, models, config=config) as field:

        def look() -> str:
            there = field.processes()
            embedders = set(field.processes("embed"))
            others = [pid for pid in there if pid not in embedders]
            return f"{len(others)} and {len(embedders)}" if len(others) > 2 or len(embedders) > 1 else ""

        with Watch(look, period=0.02):
            for _ in range(scale(100, 2)):
                calls = [field.prepare(dice.choice([*FIVE, *FIVE, "embed"])) for _ in range(10)]
                field.together(calls)
                assert [call.wait().wrong() for call in calls] == [""] * 10
        assert field.starts("embed") == 1, "the exempt one is never evicted"


def test_case_101_an_idle_model_is_really_gone_when_its_time_is_over(tmp_path: Path, scale: Scale) -> None:
    """`ttl`: -1 and none = what `globalTTL` says, 0 = never; as in llama-swap."""
    models = {
        "A": stub("--fork", vram=False),
        "B": stub(vram=False, ttl=-1),
        "C": stub(vram=False, ttl=0),
        "D": stub(vram=False, ttl=2 if scale.soak else 1),
    }
    config = {"globalTTL": 1, "groups": SIDE_BY_SIDE, "routing": {"scheduler": {"use": "fifo"}}}
    with Field(tmp_path, models, config=config) as field:
        calls = field.together([field.prepare(name, stream=True) for name in models])
        assert [call.wait().wrong() for call in calls] == [""] * 4
        ends = {call.model: call.client.end or 0.0 for call in calls}
        for name, ttl in (("A", 1.0), ("B", 1.0), ("D", models["D"].keys["ttl"])):
            field.until(lambda name=name: not field.processes(name), f"{name} to be gone", 5.0)  # type: ignore[misc]  # mypy cannot infer a lambda's default
            assert ttl - 0.1 <= time.monotonic() - ends[name] <= ttl + 1.0
        field.until(lambda: set(field.running()) == {"C"}, "all to be told")
        assert field.processes("C")
        assert all(note["left"] is False for note in field.records("request"))


def test_case_104_who_only_looks_at_our_pages_neither_keeps_a_model_nor_loads_one(tmp_path: Path) -> None:
    with Field(tmp_path, {"A": stub(ttl=1), "B": stub(ttl=1)}) as field:
        call = field.chat("A")
        pages = ("/health", "/v1/models", "/running", "/metrics", "/api/metrics/activity", "/ui/", "/logs")
        while field.processes():
            assert time.monotonic() - (call.client.end or 0.0) < 2.5, "it is kept"
            for page in pages:
                assert field.get(page).status == 200
        assert time.monotonic() - (call.client.end or 0.0) >= 0.9
        for page in pages:
            field.get(page)
        assert field.starts() == 1


@pytest.mark.soak(seconds=5)
def test_case_104_a_page_of_a_models_server_counts_as_use_unless_it_may_not_load_it(tmp_path: Path) -> None:
    """What goes to the model's server is use of it, as in llama-swap; a path of `ignorePaths` loads nothing.

    So a probe of `/upstream/A/health` once a second keeps A loaded: whoever asks A's own server has asked for
    it.  `/running` and `/v1/models` are there for those who only want to know.
    """
    config = {"upstream": {"ignorePaths": ["^/health$"]}}
    with Field(tmp_path, {"A": stub(ttl=1)}, config=config) as field:
        assert field.get("/upstream/A/health").status == 409
        assert field.starts() == 0
        assert field.chat("A").ok
        for _ in range(15):
            assert field.get("/upstream/A/health").status == 200
            time.sleep(0.1)
        last = time.monotonic()
        field.until(lambda: not field.processes("A"), "it to go", 3.0)
        assert time.monotonic() - last >= 0.9
        assert field.get("/upstream/A/health").status == 409
        assert field.starts() == 1


# --- addresses -----------------------------------------------------------------------------------------

LOCALHOST = "http://localhost:${PORT}"
HOSTS = {"four": "127.0.0.1", "six": "::1", "both": "::", "any": "0.0.0.0"}


def test_case_105_a_server_is_found_on_whichever_loopback_it_listens(tmp_path: Path) -> None:
    """With `proxy: http://localhost:...`, and with none, which means the same."""
    models = {
        f"{name} {said}": stub(f"--host {host}", vram=False, proxy=proxy)
        for said, proxy in (("said", LOCALHOST), ("unsaid", None))
        for name, host in HOSTS.items()
    }
    config = {
        "groups": {"all": {"swap": False, "members": list(models)}},
        "routing": {"scheduler": {"use": "fifo"}},
    }
    with AnyProxy(tmp_path, models, config=config) as field:
        calls = field.together([field.prepare(name) for name in models])
        assert [call.wait().wrong() for call in calls] == [""] * len(models)
        for name in models:
            call = field.chat(name)
            assert (call.wrong(), call.took < 0.3) == ("", True), name
        rows = field.rows(2 * len(models))
        assert {row["resp_status_code"] for row in rows} == {200}
        ports = {entry["proxy"].rpartition(":")[2] for entry in field.get("/running").json["running"]}
        assert len(ports) == len(models), "no port is shared, on whatever family"


class AnyProxy(Field):
    """Where a model's `proxy` is None, the key is left out."""

    def __init__(self, folder: Path, models: Mapping[str, Any], **more: Any) -> None:
        super().__init__(folder, models, **more)
        for entry in self.config["models"].values():
            if entry["proxy"] is None:
                del entry["proxy"]


@pytest.mark.soak(seconds=12)
@pytest.mark.parametrize("host", ["::1", "127.0.0.1"])
def test_case_105_a_port_that_somebody_else_has_is_not_taken_for_the_models(
    host: str, tmp_path: Path
) -> None:
    first = free_ports(2)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ours = "127.0.0.1" if ":" in host else "::1"
    models = {"A": stub(f"--host {ours}", proxy="http://localhost:${PORT}"), "B": stub()}
    with (
        socket.create_server((host, first), family=family),
        Field(tmp_path, models, config={"startPort": first}) as field,
    ):
        call = field.chat("A")

        assert call.status == 500
        assert f"port {first} is in use" in call.json["error"]["message"]
        assert field.starts("A") == 0
        assert field.chat("B").wrong() == ""


@pytest.mark.parametrize(
    ("listen", "reached"),
    [
        (":{}", ("127.0.0.1", "::1")),
        pytest.param("[::]:{}", ("127.0.0.1", "::1"), marks=pytest.mark.soak(seconds=2)),
        pytest.param("localhost:{}", ("127.0.0.1",), marks=pytest.mark.soak(seconds=2)),
        pytest.param("[::1]:{}", ("::1",), marks=pytest.mark.soak(seconds=2)),
    ],
)
def test_case_105_the_daemon_listens_where_it_is_told_to(
    listen: str, reached: tuple[str, ...], tmp_path: Path
) -> None:
    port = free_ports(1)
    command = (*LLAMA_SWAP, "--listen", listen.format(port))
    with Field(tmp_path, {"A": ""}, command=command) as field:
        for host in reached:
            with socket.create_connection((host, port), timeout=5) as wire:
                wire.sendall(b"GET /health HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
                assert wire.recv(100).startswith(b"HTTP/1.1 200 "), host
        assert ask(field.daemon.port, "GET", "/health").status == 200
