"""Whatever clients, servers and operators do, everybody is answered once and every call leaves one row."""

from __future__ import annotations

from contextlib import ExitStack

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from twisted.internet.error import ConnectionRefusedError as Refused
from typing_extensions import override

from support.dispatch_rig import nothing_goes_wrong
from support.web_daemon import WebDaemon
from support.web_talk import Talk, Upstream

FLEET = """
    routing: {scheduler: {use: serial}}
    models:
      a: {cmd: serve a, proxy: "http://127.0.0.1:9001", ttl: 4}
      b: {cmd: serve b, proxy: "http://127.0.0.1:9002", concurrencyLimit: 2}
      c: {cmd: serve c, proxy: "http://127.0.0.1:9003", compat: {drainOnDisconnect: true}}
"""

some_model = st.sampled_from(["a", "b", "c", "ghost"])
some_place = st.integers(min_value=0, max_value=20)


class Walk(RuleBasedStateMachine):
    """One daemon in a busy place."""

    @initialize()
    def begin(self) -> None:
        """Nobody is there yet."""
        self.daemon = WebDaemon(FLEET)
        self.clients: list[Talk] = []
        self.gone: set[int] = set()  # places of clients that left
        self.upstreams: list[Upstream] = []
        self.rows_due = 0
        self.watch = ExitStack()
        self.watch.enter_context(nothing_goes_wrong())

    @rule(model=some_model, priority=st.sampled_from(["", "batch", "interactive", "7", "nonsense"]))
    def chat(self, model: str, priority: str) -> None:
        """A client wants a model to work."""
        self.clients.append(self.daemon.chat(model, X_LlamaSwap_Priority=priority))
        self.rows_due += 1

    @rule(model=some_model)
    def look(self, model: str) -> None:
        """A client only looks at a page of a model."""
        self.clients.append(self.daemon.get(f"/upstream/{model}/slots"))

    @rule(place=some_place)
    def leave(self, place: int) -> None:
        """A client hangs up, answered or not."""
        if self.clients:
            place %= len(self.clients)
            self.gone.add(place)
            self.clients[place].leaves()

    @rule(refused=st.booleans())
    def connect(self, refused: bool) -> None:
        """A model's server takes the connection that it is asked for, or does not."""
        if not self.daemon.reactor.attempts:
            return
        if refused:
            self.daemon.reactor.refuse(Refused())
        else:
            self.upstreams.append(self.daemon.upstream())

    @rule(place=some_place, how=st.sampled_from(["whole", "begun", "ended", "nonsense", "dead"]))
    def answer(self, place: int, how: str) -> None:
        """A model's server says something."""
        asked = self.asked()
        if not asked:
            return
        upstream = asked[place % len(asked)]
        if how == "whole" and not upstream.begun:
            upstream.answers()
        elif how == "begun" and not upstream.begun:
            upstream.begins(b"data: 1\n\n")
            upstream.begun = True
        elif how == "ended" and upstream.begun:
            self.end(upstream)
        elif how == "nonsense" and not upstream.begun:
            upstream.end.send(b"nonsense\r\n\r\n")
        elif how == "dead":
            upstream.dies()

    @rule()
    def ready(self) -> None:
        """The child that starts is ready."""
        self.daemon.ready()

    @rule()
    def goes(self) -> None:
        """Children that were asked to stop do so, and their connections break."""
        self.daemon.goes()
        self.break_connections()

    @rule(code=st.integers(0, 1))
    def crash(self, code: int) -> None:
        """A child ends by itself."""
        if self.daemon.children.alive:
            self.daemon.children.alive[-1].exits(code)
            self.break_connections()

    @rule(model=st.sampled_from(["a", "b", "c"]))
    def unload(self, model: str) -> None:
        """An operator stops a model."""
        self.clients.append(self.daemon.request("POST", f"/api/models/unload/{model}"))

    @rule(seconds=st.sampled_from([0.01, 0.5, 3.0, 11.0]))
    def wait(self, seconds: float) -> None:
        """Time passes; who ignores its signals is killed in the end."""
        self.daemon.reactor.advance(seconds)
        for child in self.daemon.children.alive:
            if "KILL" in child.signals:
                child.is_killed()

    @invariant()
    def one_job_at_a_time(self) -> None:
        """No two calls that work are with a model at once."""
        assert len([one for one in self.asked() if one.line.startswith("POST")]) <= 1
        assert len(self.daemon.running) <= 1

    @invariant()
    def no_row_too_many(self) -> None:
        """A call leaves at most one row."""
        assert len(self.daemon.rows) <= self.rows_due

    @override
    def teardown(self) -> None:
        """In the end all are answered, and everything is free."""
        if not hasattr(self, "daemon"):
            return
        for _ in range(3 * len(self.clients) + 6):
            while self.daemon.reactor.attempts:
                self.upstreams.append(self.daemon.upstream())
            for upstream in self.asked():
                if upstream.begun:
                    self.end(upstream)
                else:
                    upstream.answers()
            self.goes()
            self.ready()
            self.daemon.reactor.advance(0.2)
        for place, client in enumerate(self.clients):
            if place not in self.gone:
                assert client.raw.startswith(b"HTTP/1.1 "), "somebody was never answered"
                assert client.raw.count(b"HTTP/1.1 ") == 1
                whole = int(client.headers.get("content-length", "-1")) == len(client.body)
                assert whole or client.body.endswith(b"0\r\n\r\n") or client.end.is_aborted()
        assert len(self.daemon.rows) == self.rows_due
        assert self.daemon.engine.when_idle().called
        ended = self.daemon.end()
        self.goes()
        assert ended.called
        assert self.daemon.running == []
        self.watch.close()

    def asked(self) -> list[Upstream]:
        """Connections on which a request waits for the rest of its answer."""
        return [
            one for one in self.upstreams if one.heard and not one.end.wire.lost and not one.end.is_aborted()
        ]

    def end(self, upstream: Upstream) -> None:
        """Finish an answer that was begun."""
        upstream.begun = False
        upstream.forget()
        upstream.goes_on(b"")

    def break_connections(self) -> None:
        """A child's connections do not outlive it."""
        if not self.daemon.running:
            for upstream in self.upstreams:
                upstream.dies()


TestWalk = Walk.TestCase
TestWalk.settings = settings(
    max_examples=25, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
