"""Whatever clients, children and operators do, and however often the configuration changes meanwhile."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from twisted.internet.error import ConnectionRefusedError as Refused
from typing_extensions import override

from support.daemon import ServiceRig
from support.dispatch_rig import nothing_goes_wrong
from support.web_talk import Talk, Upstream

MODELS = {
    "a": "proxy: 'http://127.0.0.1:9001', ttl: 4, sendLoadingState: true",
    "b": "proxy: 'http://127.0.0.1:9002', concurrencyLimit: 2",
    "c": "proxy: 'http://127.0.0.1:9003', compat: {drainOnDisconnect: true}",
}
SCHEDULERS = ("serial", "fifo")
GROUPS = ("", "groups: {side: {swap: false, members: [%s]}}\n")

some_model = st.sampled_from(["a", "b", "c", "any", "ghost"])
some_place = st.integers(min_value=0, max_value=20)
fleets = st.dictionaries(st.sampled_from(sorted(MODELS)), st.integers(1, 2), min_size=1)
"""Models, and in which version each of them is configured."""


def configuration(models: dict[str, int], scheduler: str, groups: str) -> str:
    """These models under this scheduler."""
    names = ", ".join(sorted(models))
    lines = "".join(
        f"  {name}: {{cmd: serve {name} v{version}, {MODELS[name]}}}\n" for name, version in models.items()
    )
    return (
        f"routing: {{scheduler: {{use: {scheduler}}}}}\n"
        f"selectors: {{any: {{strategy: warm, targets: [{names}]}}}}\n"
        f"{groups % names if groups else ''}models:\n{lines}"
    )


class Walk(RuleBasedStateMachine):
    """One service in a busy place with a busy operator."""

    @initialize(models=fleets, scheduler=st.sampled_from(SCHEDULERS), groups=st.sampled_from(GROUPS))
    def begin(self, models: dict[str, int], scheduler: str, groups: str) -> None:
        """Nobody is there yet."""
        self.patch = pytest.MonkeyPatch()
        self.rig = ServiceRig(self.patch, configuration(models, scheduler, groups), threads=False)
        self.rig.start()
        self.models = models
        self.clients: list[Talk] = []
        self.gone: set[int] = set()  # places of clients that left
        self.upstreams: list[Upstream] = []
        self.rows_due = 0
        self.watch = ExitStack()
        self.watch.enter_context(nothing_goes_wrong())

    @rule(models=fleets, scheduler=st.sampled_from(SCHEDULERS), groups=st.sampled_from(GROUPS))
    def reload(self, models: dict[str, int], scheduler: str, groups: str) -> None:
        """The operator has changed something."""
        self.rig.reload(configuration(models, scheduler, groups))
        self.models = models

    @rule(model=some_model, priority=st.sampled_from(["batch", "interactive", "7"]), stream=st.booleans())
    def chat(self, model: str, priority: str, stream: bool) -> None:
        """A client wants a model to work."""
        header = f"X-LlamaSwap-Priority: {priority}\r\n"
        body = {"model": model, "stream": stream}
        self.clients.append(self.rig.post("/v1/chat/completions", body, more=header))
        self.rows_due += 1

    @rule(model=some_model)
    def look(self, model: str) -> None:
        """A client only looks at a page of a model."""
        self.clients.append(self.rig.ask(f"GET /upstream/{model}/slots"))

    @rule(place=some_place)
    def leave(self, place: int) -> None:
        """A client hangs up, answered or not."""
        if self.clients:
            place %= len(self.clients)
            self.gone.add(place)
            self.clients[place].leaves()

    @rule(place=some_place)
    def cancel(self, place: int) -> None:
        """Somebody ends a request by its id."""
        self.rig.ask(f"POST /api/inflight/{place}/cancel")

    @precondition(lambda self: self.rig.reactor.attempts)
    @rule(refused=st.booleans())
    def connect(self, refused: bool) -> None:
        """A model's server takes the connection that it is asked for, or does not."""
        if refused:
            self.rig.reactor.refuse(Refused())
        else:
            self.upstreams.append(self.rig.upstream())

    @rule(place=some_place, how=st.sampled_from(["whole", "begun", "ended", "dead"]))
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
        elif how == "dead":
            upstream.dies()

    @rule()
    def ready(self) -> None:
        """The children that start are ready."""
        self.rig.ready()

    @rule()
    def goes(self) -> None:
        """Children that were asked to stop do so."""
        self.rig.goes()

    @rule(place=some_place, code=st.integers(0, 1))
    def crash(self, place: int, code: int) -> None:
        """A child ends by itself, and with it whatever it was answering."""
        alive = self.rig.children.alive
        if alive:
            alive[place % len(alive)].exits(code)
            if not self.rig.children.alive:
                for upstream in self.upstreams:
                    upstream.dies()

    @rule()
    def unload(self) -> None:
        """An operator stops everything that he has configured."""
        self.clients.append(self.rig.ask("GET /unload"))

    @rule(seconds=st.sampled_from([0.01, 0.5, 3.0, 11.0]))
    def wait(self, seconds: float) -> None:
        """Time passes; who ignores its signals is killed in the end."""
        self.rig.reactor.advance(seconds)
        for child in self.rig.children.alive:
            if "KILL" in child.signals:
                child.is_killed()

    @invariant()
    def no_row_too_many(self) -> None:
        """A call leaves at most one row."""
        assert len(self.rig.rows) <= self.rows_due

    @invariant()
    def only_what_is_configured_is_shown(self) -> None:
        """The pages know nothing of models that are gone."""
        assert self.rig.service.engine.states().keys() == self.models.keys()

    @override
    def teardown(self) -> None:
        """In the end all are answered, and nothing of what is no longer configured runs."""
        if not hasattr(self, "rig"):
            return
        self.come_to_an_end()
        for place, client in enumerate(self.clients):
            if place not in self.gone:
                self.check_answered(client)
        assert len(self.rig.rows) == self.rows_due
        assert len(self.rig.service._around.inflight) == 0
        self.rig.finish_stopping()
        assert self.rig.children.alive == []
        assert self.rig.reactor.getDelayedCalls() == []
        self.watch.close()
        self.patch.undo()

    def come_to_an_end(self) -> None:
        """All upstreams answer; then only what is configured runs, as it is configured."""
        for _ in range(3 * len(self.clients) + 8):
            self.serve_a_round()
        assert self.rig.service.engine.view().jobs == ()
        assert self.rig.service.engine.fleet.keys() == self.models.keys()
        assert set(self.rig.running) <= {f"{name} v{version}" for name, version in self.models.items()}

    def serve_a_round(self) -> None:
        """Everybody does what he should."""
        while self.rig.reactor.attempts:
            self.upstreams.append(self.rig.upstream())
        for upstream in self.asked():
            if upstream.begun:
                self.end(upstream)
            else:
                upstream.answers()
        self.goes()
        self.ready()
        self.rig.reactor.advance(0.3)

    def check_answered(self, client: Talk) -> None:
        """One whole answer, or one that does not look whole."""
        assert client.raw.startswith(b"HTTP/1.1 "), "somebody was never answered"
        assert client.raw.count(b"HTTP/1.1 ") == 1
        whole = int(client.headers.get("content-length", "-1")) == len(client.body)
        assert whole or client.body.endswith(b"0\r\n\r\n") or client.end.is_aborted()
        if client.headers["content-type"] == "application/json" and whole:
            assert json.loads(client.body) is not None

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


class StoppedWalk(Walk):
    """The same, but the service is told to stop in the middle of it."""

    @override
    def come_to_an_end(self) -> None:
        """Nobody answers any more; children end when they are told to, some only when they are killed."""
        self.rig.stop()
        self.rig.goes()
        self.rig.reactor.pump([1.0] * 35)
        self.rig.goes()
        self.rig.finish_stopping()
        self.rig.reactor.advance(1.0)

    @override
    def check_answered(self, client: Talk) -> None:
        """Whoever was still with an upstream when the time was over is cut off."""
        if client.raw or not client.end.is_aborted():
            super().check_answered(client)


SHORT = settings(
    max_examples=15, stateful_step_count=35, deadline=None, suppress_health_check=list(HealthCheck)
)
TestWalk = Walk.TestCase
TestWalk.settings = SHORT
TestStoppedWalk = StoppedWalk.TestCase
TestStoppedWalk.settings = SHORT
