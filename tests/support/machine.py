"""A busy place: a whole daemon in memory, and everybody who has to do with it.

Knows what was done to the daemon (requests, hang-ups, crashes, reloads) and
what of it can be seen from outside; `machine_truth` compares the two.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from typing import Any, Self

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionRefusedError as Refused

from llamaswap.processes.lifecycle import State
from support.daemon import ServiceRig
from support.daemon_reloads import half_sent, the_rest
from support.dispatch_rig import nothing_goes_wrong
from support.machine_parts import PORTS, Guest, Line, Plan, Saying, key_of, model_of
from support.processes_fakes import FakeChild
from support.web_daemon import NOON
from support.web_talk import Talk


class House:
    """One daemon with its guests, its models' servers and its operator."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.guests: list[Guest] = []
        self.lines: list[Line] = []
        self.deaf: set[FakeChild] = set()  # children that no polite signal ends
        self.reloads = 0
        self.refusals = 0  # connections that a model's server did not take
        self.only_serial = plan.scheduler == "serial"  # so far
        self.preloads = len(plan.preloaded)  # tickets that nobody but the configuration has asked for
        self.inherited: dict[int, str] = {}  # jobs of when the configuration last changed: their models
        self.resumed: dict[str, Deferred[None]] = {}  # loads that went on then
        self.moved = 0  # how often a ticket was given another priority
        self.wrong: list[str] = []  # what was seen in the middle of a step
        self._forgotten: Counter[str] = Counter()  # what was counted before `forgets`
        self._stack = ExitStack()
        self._patch = pytest.MonkeyPatch()
        self._stack.callback(self._patch.undo)
        self._noon = NOON
        self._stack.enter_context(nothing_goes_wrong())
        self.rig = ServiceRig(self._patch, plan.text(), threads=False)
        self._spawn = self.rig.children.spawn
        self._patch.setattr(self.rig.children, "spawn", self._starting)
        self.rig.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *how: Any) -> None:  # noqa: PYI036 - passed on
        """Nothing of it is needed any more; fails if something went wrong that nobody handled."""
        self._stack.__exit__(*how)

    # --- what clients do -----------------------------------------------------------------------------------

    def chats(
        self, model: str, priority: str = "", *, stream: bool = False, key: str = "op", more: str = ""
    ) -> Guest:
        """A client wants a model to work; `more` is header fields."""
        header = f"X-LlamaSwap-Priority: {priority}\r\n" if priority else ""
        body = {"model": model, "stream": stream}
        asked = self.rig.post("/v1/chat/completions", body, more=f"{key_of(key)}{header}{more}")
        guest = self._received(asked, chat=True)
        guest.caller = key if self.plan.callers and key != "op" else ""
        return guest

    def begins_to_send(self, model: str) -> Guest:
        """The same, but the last byte takes its time."""
        guest = self._received(half_sent(self.rig, "/v1/chat/completions", model, key_of()), chat=True)
        guest.whole = False
        return guest

    def sends_the_rest(self, guest: Guest) -> None:
        """That byte arrives, unless the daemon has lost its patience."""
        if not guest.whole and not guest.left and not guest.talk.raw:
            guest.whole = True
            the_rest(guest.talk)

    def looks(self, head: str, more: str = key_of(), body: bytes = b"") -> Guest:
        """A client only looks at a page, or an operator gives an order."""
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        request = f"{head} HTTP/1.1\r\nHost: h\r\n{more}{length}\r\n".encode() + body
        return self._received(self.rig.send(request), chat=False)

    def leaves(self, guest: Guest, *, rudely: bool = False) -> None:
        """A client hangs up, answered or not."""
        guest.left = True
        if rudely:
            guest.talk.end.reset()
        else:
            guest.talk.leaves()

    def _received(self, talk: Talk, *, chat: bool) -> Guest:
        self.guests.append(Guest(talk, chat))
        return self.guests[-1]

    # --- what models' servers do ---------------------------------------------------------------------------

    def connects(self, *, refused: bool = False) -> None:
        """A model's server takes the oldest connection that it is asked for, or does not."""
        reactor, model = self.rig.reactor, self.wanted_lines()[0]
        if refused:
            self.refusals += 1
            reactor.refuse(Refused())
        else:
            self.lines.append(Line(model, self.rig.upstream()))

    def wanted_lines(self) -> list[str]:
        """The model of each connection that was asked for and that nothing has become of, oldest first."""
        reactor = self.rig.reactor
        while reactor.attempts and reactor.connectors[reactor._seen].stoppedConnecting:
            reactor._seen += 1
        return [PORTS[int(attempt[1])] for attempt in reactor.tcpClients[reactor._seen :]]

    def says(self, line: Line, what: Saying) -> None:
        """A model's server answers a request, or part of it, or breaks off."""
        server = line.server
        if what == "dead":
            server.dies()
        elif what == "ended" and server.begun:
            server.begun = False
            server.forget()
            server.goes_on(b"")
        elif not server.begun and what == "whole":
            server.answers()
        elif not server.begun and what == "begun":
            server.begins(b"data: 1\n\n")
            server.begun = True
        elif not server.begun and what == "nonsense":
            server.end.send(b"nonsense\r\n\r\n")

    def asked(self) -> list[Line]:
        """Connections on which a request waits for the rest of its answer."""
        return [line for line in self.lines if line.asked]

    # --- what children do ----------------------------------------------------------------------------------

    def ends(self, child: FakeChild, code: int = 0, *, wires_first: bool = False) -> None:
        """A child ends, by itself or because it was told to; its connections break with it."""
        lines = [line for line in self.lines if line.model == model_of(child)]
        if wires_first:
            for line in lines:
                line.server.dies()
        if child.alive:
            child.exits(code)
        for line in lines:
            line.server.dies()

    def stopped_ones_end(self) -> None:
        """Children that were told to end do so, unless they are deaf."""
        for child in self.rig.children.alive:
            if child.signals and child not in self.deaf:
                self.ends(child)

    def killed_ones_end(self) -> None:
        """Whatever they are."""
        for child in self.rig.children.alive:
            if "KILL" in child.signals:
                self.deaf.discard(child)
                child.is_killed()
                self.ends(child)

    def health(self, status: int | None) -> None:
        """The children that start answer so; None = they refuse the connection."""
        self.rig.prober.answers(status, "" if status else "connection refused")

    def _starting(self, *how: Any) -> FakeChild:
        """A child is about to start: nobody may start that nobody wants, nor beside one that has to go."""
        model = str(how[0].argv[1])
        engine = self.rig.service.engine
        # A protected one is loaded to the end, also where it was the child before that had been started.
        kept = model in self.plan.protected
        if not engine.dispatcher.wanted(model) and engine.view().jobs and not kept:
            self.wrong.append(f"{model} starts though nobody wants it and others work")
        others = {model_of(other) for other in self.rig.children.alive}
        if self._was_granted(model):
            others -= set(self.inherited.values())
        if others and not self.plan.allows(others | {model}):
            self.wrong.append(f"{model} starts beside {sorted(others)}")
        return self._spawn(*how)

    # --- what the operator and the clock do ----------------------------------------------------------------

    def reload(self, plan: Plan) -> None:
        """The configuration has changed."""
        self.preloads += len(plan.preloaded - self.plan.preloaded)
        self.plan = plan
        self.reloads += 1
        self.only_serial = self.only_serial and plan.scheduler == "serial"
        engine = self.rig.service.engine
        self.inherited = {job.number: job.model for job in engine.view().jobs}
        self.rig.reload(plan.text())
        self.resumed = dict(engine.dispatcher._box.loads.under_way)

    def _was_granted(self, model: str) -> bool:
        """Whether a job of when the configuration last changed, or its load, still goes on."""
        engine = self.rig.service.engine
        load = self.resumed.get(model)
        if load is not None and load is engine.dispatcher._box.loads.under_way.get(model):
            return model in self.inherited.values()  # also where all who waited for it have left since
        return any(job.model == model and job.number in self.inherited for job in engine.view().jobs)

    def wall_jumps(self, seconds: float) -> None:
        """Somebody has set the clock on the wall."""
        self._noon += seconds
        self._patch.setattr("support.daemon.NOON", self._noon)

    def passes(self, seconds: float) -> None:
        """Time goes by, and who is idle for longer than its `ttl` ends."""
        before = self._idle(seconds)
        self.rig.reactor.advance(seconds)
        after = self._idle(seconds)
        late = [model for model, since in before.items() if after.get(model) == since]
        self.wrong += [f"{model} stays beyond its time" for model in late]

    def _idle(self, seconds: float) -> dict[str, float]:
        """When each model came up that nobody uses or wants and whose `ttl` is less than so many seconds."""
        engine = self.rig.service.engine
        reports = [server.report() for server in engine.fleet.values() if 0 < server.model.ttl < seconds]
        return {
            report.model: report.since
            for report in reports
            if report.state is State.READY and not report.uses and not engine.dispatcher.wanted(report.model)
        }

    def forgets(self) -> None:
        """What the fakes remember of what is over is forgotten, and nothing else."""
        rig = self.rig
        self._forgotten += self.counters()
        for known in (self.guests, self.deaf):
            known.clear()
        self.lines = [line for line in self.lines if line.open]
        rig.children.started[:] = rig.children.alive
        rig.prober.asked.clear()
        for remembered in (rig.reactor.tcpClients, rig.reactor.connectors):
            del remembered[: rig.reactor._seen]
        rig.reactor._seen = 0
        for journal in rig.journals:
            journal.rows.clear()

    # --- everybody does what he should ---------------------------------------------------------------------

    def serves_a_round(self) -> None:
        """Servers answer, children go and come up, a moment passes."""
        while self.wanted_lines():
            self.connects()
        for line in self.asked():
            self.says(line, "ended" if line.server.begun else "whole")
        self.stopped_ones_end()
        self.killed_ones_end()
        self.health(200)
        self.passes(0.3)

    # --- what can be seen ----------------------------------------------------------------------------------

    def counters(self) -> Counter[str]:
        """The sum of each metric over all its labels, of answers for each status as well; since `forgets`."""
        found: Counter[str] = Counter()
        for metric in self.rig.service.engine.metrics.collect():
            for sample in metric.samples:
                if sample.name.endswith(("_total", "_count")):
                    name = sample.name.removeprefix("llamaswap_").removeprefix("scheduler_")
                    found[name] += int(sample.value)
                    if "code" in sample.labels:
                        found[f"{name} {sample.labels['code']}"] += int(sample.value)
        found.subtract(self._forgotten)
        return found

    def is_idle(self) -> bool:
        """Whether nobody waits, works or is answered."""
        view = self.rig.service.engine.view()
        waiting = sum(band.depth for band in view.bands.values())
        return not (waiting or view.jobs or self.rig.service._around.inflight)

    def chats_due(self) -> int:
        """How many requests have been received that leave a row."""
        return sum(guest.chat and guest.whole for guest in self.guests)

    def looks_due(self) -> int:
        """How many others."""
        return sum(not guest.chat for guest in self.guests)
