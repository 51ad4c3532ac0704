"""How a call gets its turn: what it asks of the queue, and what it says of itself.

What is told meanwhile is in `test_inference_loading` and `test_inference_keepalive`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from twisted.logger import LogLevel, capturedLogs

from llamaswap.leases import Lease
from support.web_daemon import WebDaemon

PLANS = """
    apiKeys: [sk-free, sk-pro, sk-max, sk-bot, sk-any]
    routing: {{scheduler: {{use: {use}}}}}
    priorities:
      callers:
        - {{name: free, keys: [sk-free]}}
        - {{name: pro, keys: [sk-pro], offset: 1}}
        - {{name: max, keys: [sk-max], offset: 2}}
        - {{name: bot, keys: [sk-bot], defaultPriority: batch, maxPriority: -1}}
      models: {{b: batch}}
    models:
      a: {{cmd: serve a, proxy: "http://127.0.0.1:9001"}}
      b: {{cmd: serve b, proxy: "http://127.0.0.1:9002"}}
    peers: {{box: {{proxy: "http://127.0.0.1:9009", models: [far]}}}}
"""


class Plans:
    """A daemon with callers of several kinds; its model `a` is warm."""

    def __init__(self, use: str = "serial") -> None:
        self.daemon = WebDaemon(PLANS.format(use=use))
        self.ask("sk-any")
        self.daemon.ready()
        self.upstream = self.daemon.upstream()
        self.upstream.answers()

    def ask(self, key: str, model: str = "a", **headers: str) -> Any:
        """Chat with a key."""
        return self.daemon.chat(model, Authorization=f"Bearer {key}", **headers)

    def row(self, key: str, model: str = "a", **headers: str) -> Mapping[str, str]:
        """The metadata of a chat that goes at once."""
        self.ask(key, model, **headers)
        self.upstream.answers()
        return self.daemon.rows[-1].metadata


@pytest.mark.parametrize(
    ("key", "batch", "normal", "chat"),
    [("sk-free", -100, 0, 100), ("sk-pro", -99, 1, 101), ("sk-max", -98, 2, 102), ("sk-any", -100, 0, 100)],
)
def test_a_plan_adds_its_offset_to_what_was_asked_for(key: str, batch: int, normal: int, chat: int) -> None:
    plans = Plans()

    rows = [plans.row(key, X_LlamaSwap_Priority=wish) for wish in ("batch", "normal", "interactive")]

    assert [row["serial_priority"] for row in rows] == [str(batch), str(normal), str(chat)]
    assert [row["serial_band"] for row in rows] == ["batch", "normal", "interactive"]


def test_the_row_names_the_caller_and_never_the_key() -> None:
    plans = Plans()

    assert plans.row("sk-pro")["caller"] == "pro"
    assert "caller" not in plans.row("sk-any")
    assert not any("sk-" in str(row) for row in plans.daemon.rows)


def test_the_header_goes_on_as_it_came() -> None:
    plans = Plans()

    plans.ask("sk-bot", X_LlamaSwap_Priority="interactive")

    assert ("X-LlamaSwap-Priority", "interactive") in plans.upstream.fields
    plans.upstream.answers()
    assert plans.daemon.rows[-1].metadata["serial_priority"] == "-1"


def test_who_says_nothing_waits_with_what_is_configured() -> None:
    plans = Plans()
    plans.ask("sk-any")

    for key in ("sk-bot", "sk-any", "sk-pro"):
        plans.ask(key, "b").leaves()
    plans.ask("sk-any", "a").leaves()

    waited = [row.metadata["serial_priority"] for row in plans.daemon.rows[1:]]
    assert waited == ["-100", "-100", "-99", "0"]


def test_max_goes_before_pro_before_free_and_all_behind_a_normal_request() -> None:
    plans = Plans()
    plans.ask("sk-any")
    for key in ("sk-free", "sk-pro", "sk-max"):
        plans.ask(key, X_LlamaSwap_Priority="batch")
    plans.daemon.reactor.advance(100)
    plans.ask("sk-any", X_LlamaSwap_Priority="normal")

    for _ in range(5):
        plans.upstream.answers()

    order = [row.metadata.get("caller") for row in plans.daemon.rows[1:]]
    assert order == [None, None, "max", "pro", "free"]


def test_under_fifo_it_counts_too() -> None:
    plans = Plans("fifo")

    row = plans.row("sk-max", X_LlamaSwap_Priority="batch")

    assert (row["fifo_priority"], row["caller"]) == ("-98", "max")


def test_who_asks_a_peer_is_named_in_the_row() -> None:
    plans = Plans()

    plans.ask("sk-pro", "far")
    plans.daemon.upstream().answers()

    assert plans.daemon.rows[-1].metadata == {"caller": "pro"}


def test_a_model_that_is_reached_by_path_knows_its_callers_too() -> None:
    plans = Plans()

    plans.daemon.post("/upstream/a/v1/chat/completions", {"model": "a"}, Authorization="Bearer sk-pro")
    plans.upstream.answers()

    assert plans.daemon.rows[-1].metadata["serial_priority"] == "1"


@pytest.mark.parametrize(("value", "status"), [("2s", 504), ("2", 504), ("soon", None), ("", None)])
def test_who_does_not_want_to_wait_long_is_told_in_time(value: str, status: int | None) -> None:
    daemon = WebDaemon()
    daemon.warm("a")
    daemon.chat("a")
    asked = daemon.chat("a", X_LlamaSwap_Max_Wait=value)

    daemon.reactor.advance(2.5)

    assert (None if asked.waits else asked.status) == status


def test_who_was_turned_away_leaves_a_row_that_says_how_it_waited() -> None:
    daemon = WebDaemon()
    daemon.warm("a")
    daemon.chat("a")
    daemon.chat("a", X_LlamaSwap_Max_Wait="2", X_LlamaSwap_Priority="5")

    daemon.reactor.advance(2.5)

    (row,) = daemon.rows
    assert (row.resp_status_code, row.metadata["serial_priority"]) == (504, "5")
    assert row.metadata["serial_band"] == "normal"


def test_a_limit_that_makes_no_sense_is_told_to_who_debugs() -> None:
    with capturedLogs() as told:
        WebDaemon().chat(X_LlamaSwap_Max_Wait="soon")

    (event,) = [event for event in told if "max_wait" in str(event.get("log_format"))]
    assert (event["log_level"], event["value"]) == (LogLevel.debug, b"soon")


def test_a_run_that_was_broken_off_or_failed_teaches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    daemon = WebDaemon()
    upstream = daemon.warm()
    cut: list[Lease] = []
    monkeypatch.setattr(daemon.engine.dispatcher, "cut_short", cut.append)

    daemon.chat()
    upstream.answers()
    assert cut == []
    daemon.chat()
    upstream.answers(b"{}", "500 No")
    leaver = daemon.chat()
    upstream.begins(b"data: 1\n\n")
    leaver.leaves()

    assert len(cut) == 2
