"""Names that mean more than a model: selectors, profiles, peers; and what filters make of a request."""

from __future__ import annotations

import base64
import json

import pytest
from twisted.internet.error import ConnectionRefusedError as Refused

from support.web_daemon import WebDaemon
from support.web_talk import Talk

CHAT = "/v1/chat/completions"

SPILLING = """
    routing: {scheduler: {use: fifo}}
    groups: {all: {swap: false, members: [a, b]}}
    selectors:
      any: {strategy: spillover, targets: [a, b]}
      warm: {strategy: warm, targets: [a, b]}
      first: {strategy: pin, targets: [b, a]}
    profiles:
      work: {pins: {daily: any, a: b, "off": null}}
      play: {pins: {daily: a}}
    models:
      a: {cmd: serve a, proxy: "http://127.0.0.1:9001", aliases: [nick]}
      b: {cmd: serve b, proxy: "http://127.0.0.1:9002", compat: {ignoreWebsockets: true}}
"""

PEERED = """
    routing: {scheduler: {use: serial}}
    selectors: {spread: {strategy: spillover, targets: [a, box/far]}}
    models: {a: {cmd: serve a, proxy: "http://127.0.0.1:9001"}}
    peers:
      box: {proxy: "http://127.0.0.2:80/base", models: [far, both], apiKey: their-key}
      other: {proxy: "http://127.0.0.3:80", models: [near/one, both]}
"""

FILTERED = """
    routing: {scheduler: {use: serial}}
    models:
      a:
        cmd: serve a
        proxy: "http://127.0.0.1:9001"
        useModelName: real/name
        filters:
          stripParams: "temperature, top_k"
          setParams: {top_p: 0.5}
          setParamsByID: {"a:fast": {mode: fast}}
"""


def both_warm() -> WebDaemon:
    """A daemon with a and b loaded."""
    daemon = WebDaemon(SPILLING)
    daemon.warm("a")
    daemon.warm("b")
    return daemon


def switch(daemon: WebDaemon, name: str | None) -> Talk:
    """Switch a profile on."""
    return daemon.request("PUT", "/api/profiles/active", body=json.dumps({"name": name}).encode())


def heard(daemon: WebDaemon, asked: Talk) -> bytes:
    """The body that the model's server got, which then answers."""
    daemon.ready()
    upstream = daemon.upstream()
    body = upstream.body
    upstream.answers()
    assert asked.status == 200
    return body


# Selectors.


def test_a_selector_is_replaced_by_its_target_in_the_body_and_named_in_the_row() -> None:
    daemon = WebDaemon(SPILLING)

    body = heard(daemon, daemon.chat("first"))

    assert body == b'{"model": "b"}'
    (row,) = daemon.rows
    assert (row.model, row.metadata["selector"]) == ("b", "first")


def test_warm_prefers_what_is_loaded() -> None:
    daemon = WebDaemon(SPILLING)
    upstream = daemon.warm("b")

    daemon.chat("warm")

    assert upstream.body == b'{"model": "b"}'


def test_two_requests_of_one_selector_are_spread_and_a_free_place_is_used_again() -> None:
    daemon = WebDaemon(SPILLING)
    daemon.chat("any")
    daemon.chat("any")
    assert sorted(daemon.running) == ["a", "b"]
    daemon.ready()
    of_a, of_b = daemon.upstream(), daemon.upstream()
    assert (of_a.body, of_b.body) == (b'{"model": "a"}', b'{"model": "b"}')

    of_b.answers()
    daemon.chat("any")

    assert of_b.body == b'{"model": "b"}'


@pytest.mark.parametrize("how", ["answered", "left", "cancelled", "died", "refused", "failed", "unloaded"])
def test_a_place_is_given_back_whatever_the_end(how: str) -> None:
    daemon = WebDaemon(SPILLING)
    asked = daemon.chat("any")
    if how == "failed":
        daemon.child.exits(1)
    elif how == "unloaded":
        daemon.get("/unload")
        daemon.goes()
    else:
        daemon.ready()
        if how == "refused":
            daemon.refuses()
        else:
            upstream = daemon.upstream()
            if how == "answered":
                upstream.answers()
            elif how == "left":
                asked.leaves()
            elif how == "cancelled":
                daemon.request("POST", "/api/inflight/1/cancel")
            elif how == "died":
                upstream.begins(b"data: 1\n\n")
                upstream.dies()
    daemon.reactor.advance(1.0)

    daemon.chat("any")

    assert daemon.running == ["a"]


def test_a_place_is_held_until_the_response_has_ended() -> None:
    daemon = both_warm()
    first = daemon.chat("any")
    daemon.chat("any")

    assert first.waits
    assert [request["model"] for request in in_flight(daemon)] == ["a", "b"]


def test_no_place_is_held_by_a_websocket_that_its_model_ignores() -> None:
    daemon = both_warm()
    daemon.chat("a")  # so that the first place is the other's
    socket = {"Connection": "Upgrade", "Upgrade": "websocket"}
    opened = daemon.request("GET", "/v1/audio/voices?model=first", headers=socket)
    spilled = [daemon.request("GET", "/v1/audio/voices?model=any", headers=socket) for _ in range(3)]

    assert opened.waits
    assert len(spilled) == 3
    assert {request["model"] for request in in_flight(daemon)} == {"a"}


def test_a_selector_without_a_target_refuses_and_leaves_no_row() -> None:
    daemon = both_warm()
    daemon.rows.clear()
    daemon.get("/unload")

    asked = daemon.chat("any")

    assert (asked.status, asked.message) == (503, 'selector "any" has no available spillover targets')
    assert daemon.rows == []


def test_selectors_are_no_names_in_paths() -> None:
    assert WebDaemon(SPILLING).get("/upstream/any/x").status == 404


def in_flight(daemon: WebDaemon) -> list[dict[str, str]]:
    """The requests under way, as a newcomer to the events is told."""
    reader = daemon.get("/api/events")
    reader.leaves()
    for part in b"".join(reader.pieces).split(b"\n\n"):
        event = json.loads(part.partition(b"data:")[2])
        if event["type"] == "inflight":
            return list(json.loads(event["data"])["requests"])
    raise AssertionError("nothing was told of who is in flight")


# Profiles.


def test_a_pin_leads_to_its_target_and_the_row_knows_only_that() -> None:
    daemon = WebDaemon(SPILLING)
    switch(daemon, "play")

    body = heard(daemon, daemon.chat("daily"))

    assert body == b'{"model": "a"}'
    assert (daemon.rows[0].model, "selector" in daemon.rows[0].metadata) == ("a", False)


def test_a_pin_may_lead_to_a_selector() -> None:
    daemon = WebDaemon(SPILLING)
    switch(daemon, "work")

    body = heard(daemon, daemon.chat("daily"))

    assert body == b'{"model": "a"}'  # a's own pin is not followed
    assert daemon.rows[0].metadata["selector"] == "any"


def test_a_pin_without_a_target_switches_a_name_off() -> None:
    daemon = WebDaemon(SPILLING)
    switch(daemon, "work")

    asked = daemon.chat("off")

    assert (asked.status, asked.message) == (404, "no model id could be identified")
    assert daemon.rows == []


def test_a_pin_counts_in_paths_too_and_leaves_the_body_alone() -> None:
    daemon = WebDaemon(SPILLING)
    switch(daemon, "work")

    asked = daemon.post("/upstream/a/x", {"model": "a"})

    assert heard(daemon, asked) == b'{"model": "a"}'
    assert daemon.running == ["b"]


def test_a_switch_is_answered_told_and_logged_once() -> None:
    daemon = WebDaemon(SPILLING)
    reader = daemon.get("/api/events")
    before = len(reader.body)

    assert switch(daemon, "work").json == {"active": "work"}
    assert switch(daemon, "work").json == {"active": "work"}

    told = reader.body[before:]
    assert told.count(b'"type":"profileChanged"') == 1
    assert told.count(b'"type":"modelStatus"') == 1
    assert switch(daemon, None).json == {"active": None}
    assert daemon.chat("daily").status == 404


def test_an_unknown_profile_changes_nothing() -> None:
    daemon = WebDaemon(SPILLING)
    switch(daemon, "work")

    asked = switch(daemon, "ghost")

    assert (asked.status, asked.message) == (404, 'profile "ghost" not found')
    assert daemon.get("/api/profiles").json["active"] == "work"


# Peers.


@pytest.mark.parametrize("name", ["far", "box/far"])
def test_a_peer_is_asked_for_its_own_name_and_the_row_has_the_clients(name: str) -> None:
    daemon = WebDaemon(PEERED)
    asked = daemon.chat(name, Authorization="Bearer mine")
    upstream = daemon.upstream()

    assert upstream.line == f"POST /base{CHAT}"
    assert upstream.body == b'{"model": "far"}'
    assert ("Host", "127.0.0.2:80") in upstream.fields
    assert ("Authorization", "Bearer their-key") in upstream.fields
    assert not any(key.lower().startswith("x-forwarded") for key, _ in upstream.fields)
    upstream.answers(b'{"usage": {"prompt_tokens": 3}}')

    assert asked.status == 200
    (row,) = daemon.rows
    assert (row.model, row.usage.input_tokens, row.metadata) == (name, 3, {})


def test_a_peer_never_waits_for_the_box() -> None:
    daemon = WebDaemon(PEERED)
    daemon.chat("a")

    asked = daemon.chat("far")
    daemon.upstream().answers()

    assert asked.status == 200
    assert len(daemon.engine.view().jobs) == 1


def test_a_name_that_two_peers_offer_needs_its_peer() -> None:
    daemon = WebDaemon(PEERED)

    assert daemon.chat("both").status == 404
    asked = daemon.chat("other/both")
    daemon.upstream().answers()

    assert asked.status == 200


def test_a_peer_that_cannot_be_reached_is_a_502_with_a_row() -> None:
    daemon = WebDaemon(PEERED)
    asked = daemon.chat("far")

    daemon.reactor.refuse(Refused())

    assert asked.status == 502
    assert asked.message.startswith("peer proxy error: ")
    assert daemon.rows[0].resp_status_code == 502


def test_a_peer_that_dies_in_the_middle_cuts_the_client_off() -> None:
    daemon = WebDaemon(PEERED)
    asked = daemon.chat("far")
    upstream = daemon.upstream()
    upstream.begins(b"data: 1\n\n")

    upstream.dies()

    assert asked.end.is_aborted()
    assert "upstream died" in daemon.rows[0].error_msg


def test_a_selector_spreads_over_a_peer() -> None:
    daemon = WebDaemon(PEERED)
    daemon.chat("spread")
    asked = daemon.chat("spread")

    upstream = daemon.upstream()
    assert upstream.body == b'{"model": "far"}'
    upstream.answers()

    assert asked.status == 200
    assert (daemon.rows[0].model, daemon.rows[0].metadata) == ("box/far", {"selector": "spread"})


@pytest.mark.parametrize(
    ("path", "model", "seen"),
    [
        ("/upstream/box/far/v1/completions", "box/far", b'{"model": "far"}'),
        ("/upstream/far/v1/completions", "box/far", b'{"model": "far"}'),
        ("/upstream/far/v1/completions", "else", b'{"model": "else"}'),
    ],
)
def test_a_peer_is_reached_by_path_and_reads_no_qualified_name(path: str, model: str, seen: bytes) -> None:
    daemon = WebDaemon(PEERED)
    asked = daemon.post(path, {"model": model})
    upstream = daemon.upstream()

    assert upstream.line == "POST /base/v1/completions"
    assert upstream.body == seen
    upstream.answers()

    assert asked.status == 200
    assert [row.req_path for row in daemon.rows] == ["/v1/completions"]


def test_a_page_of_a_peer_that_may_start_no_model_is_passed_on() -> None:
    daemon = WebDaemon(PEERED)
    asked = daemon.get("/upstream/other/near/one/app.js")
    upstream = daemon.upstream()
    assert upstream.line == "GET /app.js"
    upstream.answers(b"js")

    assert asked.body == b"js"
    assert daemon.rows == []


# Filters.


def test_filters_change_what_they_are_told_to_and_no_other_byte() -> None:
    daemon = WebDaemon(FILTERED)
    asked = daemon.request(
        "POST", CHAT, body=b'{ "temperature" : 1, "model":"a:fast",  "big": 1e400, "messages": [] }'
    )

    body = heard(daemon, asked)

    assert b'"model":"real/name"' in body
    assert b'"big": 1e400, "messages": []' in body
    assert b"temperature" not in body
    assert json.loads(body)["top_p"] == 0.5
    assert json.loads(body)["mode"] == "fast"
    (row,) = daemon.rows
    assert row.model == "a"


def test_a_capture_has_the_body_as_the_upstream_got_it() -> None:
    daemon = WebDaemon(FILTERED)
    body = heard(daemon, daemon.chat("a"))

    capture = daemon.get("/api/captures/1").json

    assert base64.b64decode(capture["req_body"]) == body


def test_a_body_that_cannot_be_filtered_is_an_error_with_a_row_and_starts_nothing() -> None:
    daemon = WebDaemon(FILTERED.replace("top_p: 0.5", '"messages.last": 1'))

    asked = daemon.post(CHAT, {"model": "a", "messages": []})

    assert asked.status == 500
    assert "messages.last" in asked.message
    assert daemon.running == []
    (row,) = daemon.rows
    assert (row.model, row.resp_status_code, row.error_msg) == ("a", 500, asked.message)
    assert b'"requests\\":[]' in daemon.get("/api/events").body


def test_filters_leave_paths_below_upstream_alone() -> None:
    daemon = WebDaemon(FILTERED)

    asked = daemon.post("/upstream/a/v1/completions", {"model": "a", "temperature": 1})

    assert heard(daemon, asked) == b'{"model": "a", "temperature": 1}'
