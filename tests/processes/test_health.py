"""When a child counts as ready, and what is said when it does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred, succeed
from twisted.internet.task import Clock

from llamaswap.processes.health import (
    LONGEST_PAUSE,
    SHORTEST_PAUSE,
    Address,
    Answer,
    NotReady,
    Question,
    candidates,
    parse_proxy,
    pause_after,
    probe_target,
    wait_until_ready,
)
from support.processes_fakes import FakeProber, a_model

HERE = Address("127.0.0.1", 5800, "", "127.0.0.1:5800")


class ScriptedProber:
    """Answers at once, from a script whose last line is repeated."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[Question] = []

    def ask(self, question: Question, timeout: float) -> Deferred[Answer]:
        self.asked.append(question)
        return succeed(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])


class Watched:
    """A wait for readiness, and what became of it."""

    def __init__(
        self, prober: ScriptedProber | FakeProber, clock: Clock, proxy: str = "", limit: int = 15
    ) -> None:
        address = parse_proxy(proxy) if proxy else HERE
        model = a_model(health_check_timeout=limit)
        self.results: list[Address] = []
        self.errors: list[BaseException] = []
        self.deferred = Deferred.fromCoroutine(wait_until_ready(model, address, prober, clock))
        self.deferred.addCallbacks(self.results.append, lambda failure: self.errors.append(failure.value))


@pytest.mark.parametrize(
    ("proxy", "address"),
    [
        ("http://localhost:5800", Address("localhost", 5800, "", "localhost:5800")),
        ("http://box/", Address("box", 80, "", "box")),
        ("https://user:pw@box/a/b/", Address("box", 443, "/a/b", "box", secure=True)),
        (" http://[::1]:8080/x y ", Address("::1", 8080, "/x%20y", "[::1]:8080")),
        ("http://[fe80::1%25eth0]:80", Address("fe80::1%eth0", 80, "", "[fe80::1]:80")),
        ("http://[fe80::1%eth0]", Address("fe80::1%eth0", 80, "", "[fe80::1]")),
    ],
)
def test_a_proxy_url_says_where_to_connect(proxy: str, address: Address) -> None:
    assert parse_proxy(proxy) == address


@pytest.mark.parametrize(
    ("proxy", "asked", "target"),
    [
        ("http://box", b"/x", b"/x"),
        ("http://box/pre/", b"/x?a=1", b"/pre/x?a=1"),
        ("http://box/pre?version=2024 a&b", b"/x", b"/pre/x?version=2024%20a&b"),
        ("http://box?v=%20", b"/x?a=1?b", b"/x?v=%20&a=1?b"),
        ("http://box?v=1#f", b"/x?", b"/x?v=1"),
    ],
)
def test_the_query_of_a_proxy_url_goes_before_that_of_each_request(
    proxy: str, asked: bytes, target: bytes
) -> None:
    (address,) = candidates(parse_proxy(proxy))

    assert address.target(asked) == target


def test_the_query_of_a_proxy_url_is_there_on_both_loopbacks() -> None:
    assert [address.query for address in candidates(parse_proxy("http://localhost?v=1"))] == ["v=1", "v=1"]


@pytest.mark.parametrize("proxy", ["", "box:80", "ftp://box", "http://", "http://box:99999", "http://[::1"])
def test_what_is_no_http_url_is_refused_by_name(proxy: str) -> None:
    with pytest.raises(ValueError, match="proxy "):
        parse_proxy(proxy)


@pytest.mark.parametrize(
    ("base", "endpoint", "target"),
    [
        ("", "/health", "/health"),
        ("/pre", "health", "/pre/health"),
        ("/pre", "//health", "/pre/"),
        ("", "http://other/ok?deep=1", "/ok?deep=1"),
        ("", "", "/"),
        ("", "/a b?q=ü", "/a%20b?q=%C3%BC"),
        ("", "/already%20quoted", "/already%20quoted"),
        ("", "/x\r\nEvil: 1", "/xEvil:%201"),
    ],
)
def test_the_endpoint_is_joined_to_the_proxys_path(base: str, endpoint: str, target: str) -> None:
    assert probe_target(base, endpoint) == target


def test_localhost_may_be_either_loopback() -> None:
    hosts = [address.host for address in candidates(parse_proxy("http://LOCALHOST:1/p"))]

    assert hosts == ["127.0.0.1", "::1"]
    assert candidates(HERE) == (HERE,)


def test_localhost_keeps_its_name_inside_tls_where_a_certificate_is_for_that() -> None:
    secure = parse_proxy("https://localhost:1")

    assert candidates(secure) == (secure,)


def test_the_first_probe_is_at_once() -> None:
    watched = Watched(ScriptedProber(Answer(200)), Clock())

    assert watched.results == [HERE]


@pytest.mark.parametrize("status", [201, 204, 301, 302, 401, 404, 503])
def test_only_200_means_ready(status: int) -> None:
    clock = Clock()
    watched = Watched(ScriptedProber(Answer(status), Answer(200)), clock)

    assert watched.results == []
    clock.advance(SHORTEST_PAUSE)

    assert watched.results == [HERE]


@given(st.floats(0, 1e6))
def test_a_pause_is_a_hundredth_of_the_time_so_far_within_its_bounds(elapsed: float) -> None:
    assert SHORTEST_PAUSE <= pause_after(elapsed) <= LONGEST_PAUSE
    assert pause_after(elapsed) <= max(SHORTEST_PAUSE, elapsed / 99.999)  # rounding aside


def test_the_deadline_holds_against_an_endpoint_that_hangs() -> None:
    clock = Clock()
    prober = FakeProber(clock)
    watched = Watched(prober, clock)

    clock.pump([0.25] * 60)

    assert [str(error) for error in watched.errors] == [
        "health check timed out after 15s: checkEndpoint '/health' did not answer: no answer"
    ]
    assert prober.questions == 0
    assert clock.getDelayedCalls() == []


def test_a_slow_endpoint_is_given_more_patience_each_time() -> None:
    clock = Clock()
    prober = FakeProber(clock)
    watched = Watched(prober, clock, limit=120)

    clock.pump([0.5] * 80)  # 5 s, 10 s and 20 s in vain
    asked = len(prober.asked)
    clock.advance(35.0)
    prober.answers(200)

    assert asked == len(prober.asked) == 4
    assert watched.results == [HERE]


def test_the_error_names_the_status_that_was_seen_and_the_key() -> None:
    clock = Clock()
    watched = Watched(
        ScriptedProber(Answer(404), Answer(None, "refused")), clock, "http://localhost:1", limit=1
    )

    clock.pump([0.1] * 12)

    assert isinstance(watched.errors[0], NotReady)
    assert str(watched.errors[0]) == (
        "health check timed out after 1s: checkEndpoint '/health' last answered with status 404"
    )


def test_a_server_that_was_still_loading_needs_no_hint() -> None:
    clock = Clock()
    watched = Watched(ScriptedProber(Answer(404), Answer(503)), clock, limit=125)

    clock.pump([0.5] * 260)

    assert str(watched.errors[0]) == "health check timed out after 2m5s"


def test_a_refusal_on_one_loopback_costs_no_pause_before_the_other_is_asked() -> None:
    prober = ScriptedProber(Answer(None, "refused"), Answer(200))

    watched = Watched(prober, Clock(), "http://localhost:5800")

    assert [address.host for address in watched.results] == ["::1"]
    assert watched.results[0].authority == "localhost:5800"


def test_a_stranger_on_one_loopback_does_not_hide_the_child_on_the_other() -> None:
    clock = Clock()
    watched = Watched(ScriptedProber(Answer(404), Answer(200)), clock, "http://localhost:5800")

    clock.advance(SHORTEST_PAUSE)

    assert [address.host for address in watched.results] == ["::1"]


def test_a_cancelled_wait_leaves_nothing_behind() -> None:
    clock = Clock()
    prober = FakeProber(clock)
    watched = Watched(prober, clock)

    watched.deferred.cancel()

    assert isinstance(watched.errors[0], CancelledError)
    assert prober.questions == 0
    assert clock.getDelayedCalls() == []
