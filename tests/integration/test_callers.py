"""Who may ask for what, and what every answer says of it, on a real daemon."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from support.real_daemon import Daemon, started, stub_config
from support.real_daemon_talk import Answer, ask, chat_body, json_fields, until

pytestmark = pytest.mark.integration

CHAT = "/v1/chat/completions"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    folder = tmp_path_factory.mktemp("callers")
    config = {
        **stub_config(folder, "a", "b", words="--load 0.3"),
        "apiKeys": ["sk-free", "sk-pro", "sk-max", "sk-any"],
        "priorities": {
            "callers": [
                {"name": "free", "keys": ["sk-free"], "maxPriority": "normal"},
                {"name": "pro", "keys": ["sk-pro"], "offset": 1},
                {"name": "max", "keys": ["${env.MAX_KEY}"], "offset": 2},
            ],
            "models": {"b": "batch"},
        },
    }
    with started(folder, config, environ={"MAX_KEY": "sk-max"}) as daemon:
        daemon.get = lambda path: ask(daemon.port, "GET", path, headers={"X-Api-Key": "sk-any"})  # type: ignore[method-assign]  # its doors are locked
        assert chat(daemon, "sk-any").status == 200
        yield daemon


def chat(daemon: Daemon, key: str, model: str = "a", wish: str | None = None, **stub: float) -> Answer:
    """Ask with a key."""
    fields = {**json_fields(wish, stub or None), "Authorization": f"Bearer {key}"}
    return ask(daemon.port, "POST", CHAT, chat_body(model), fields)


def test_the_plans_of_one_crowd_are_served_in_their_order(daemon: Daemon) -> None:
    answers: list[str] = []

    def wait(key: str) -> None:
        assert chat(daemon, key, wish="batch", first=0.2).status == 200  # apart, or threads decide
        answers.append(key)

    first = threading.Thread(target=chat, args=(daemon, "sk-any"), kwargs={"first": 1.5})
    first.start()
    until(lambda: len(daemon.get("/api/queue").json["jobs"]) == 1, "the job to begin")
    crowd = []
    for number, key in enumerate(("sk-free", "sk-pro", "sk-max"), 1):
        crowd.append(threading.Thread(target=wait, args=(key,)))
        crowd[-1].start()
        until(lambda wanted=number: daemon.waiting() == wanted, "it to wait")  # type: ignore[misc]  # bound now
    for thread in (first, *crowd):
        thread.join()

    assert answers == ["sk-max", "sk-pro", "sk-free"]
    rows = daemon.rows()[-3:]
    assert [row["metadata"]["caller"] for row in rows] == ["max", "pro", "free"]
    assert [row["metadata"]["serial_priority"] for row in rows] == ["-98", "-99", "-100"]
    assert "sk-" not in str(rows)


def test_an_answer_says_how_its_request_fared(daemon: Daemon) -> None:
    bounded = chat(daemon, "sk-free", wish="interactive")
    swapped = chat(daemon, "sk-any", "b")

    told = {name.lower(): value for name, value in bounded.headers.items()}
    assert (told["x-llamaswap-queue-ms"], told["x-llamaswap-load-ms"]) == ("0", "0")
    assert (told["x-llamaswap-score"], told["x-llamaswap-band"]) == ("10", "normal")
    assert int(swapped.headers["X-LlamaSwap-Load-Ms"]) >= 300
    assert (swapped.headers["X-LlamaSwap-Score"], swapped.headers["X-LlamaSwap-Band"]) == ("-100", "batch")


def test_a_request_says_how_long_it_wants_to_wait(daemon: Daemon) -> None:
    first = threading.Thread(target=chat, args=(daemon, "sk-any"), kwargs={"first": 1.5})
    first.start()
    until(lambda: len(daemon.get("/api/queue").json["jobs"]) == 1, "the job to begin")
    fields = {**json_fields(), "Authorization": "Bearer sk-pro", "X-LlamaSwap-Max-Wait": "0.3"}

    answer = ask(daemon.port, "POST", CHAT, chat_body("a"), fields)
    first.join()

    assert answer.status in (503, 504)  # before it began to wait, if jobs have been measured
    row = next(row for row in reversed(daemon.rows()) if row["resp_status_code"] == answer.status)
    assert row["metadata"]["caller"] == "pro" and row["metadata"]["serial_priority"] == "1"
