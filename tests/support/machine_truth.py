"""What is true of a daemon at any moment, whatever was done to it.

Each function returns what is wrong, '' for nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from llamaswap.doubts import SETTLE
from llamaswap.greeting import GREETING_SECONDS
from llamaswap.processes.lifecycle import State
from support.machine import House
from support.machine_parts import model_of

Truth = Callable[[House], str]


def nothing_was_seen(house: House) -> str:
    """Nobody started whom nobody wanted, nor beside one that has to go."""
    return "; ".join(house.wrong)


def each_request_is_in_flight_or_has_its_row(house: House) -> str:
    """Never both, and never neither."""
    rows, flights = len(house.rig.rows), len(house.rig.service._around.inflight)
    due = house.chats_due()
    return "" if rows + flights == due else f"{due} requests, {rows} rows, {flights} in flight"


def one_model_at_a_time(house: House) -> str:
    """Under serial, and no more jobs of it than its width; but for what another configuration had let run."""
    if house.plan.scheduler != "serial":
        return ""
    jobs = {job.number: job.model for job in house.rig.service.engine.view().jobs}
    too_many = len(jobs) > house.plan.width or len(set(jobs.values())) > 1
    if too_many and not jobs.keys() <= house.inherited.keys():
        return f"jobs at once: {jobs}"
    busy = [line.model for line in house.asked() if line.server.line.startswith("POST")]
    return f"at work at once: {busy}" if len(busy) > max(1, len(jobs)) else ""


def nobody_waits_for_nothing(house: House) -> str:
    """Whoever waits does so for a job, and a job for something that exists."""
    engine = house.rig.service.engine
    view = engine.view()
    waiting = sum(view.bands[band].depth for band in view.bands.keys() - view.paused)
    moving = _moving(house)
    # Under fifo a load goes on when all have left; it may wait to hear whether its server has died.
    loading = moving or (engine.dispatcher._box.loads.under_way and _something_is_due(house, SETTLE))
    if waiting and not view.jobs and (house.plan.scheduler == "serial" or not loading):
        return f"{waiting} wait, and nothing is done: {engine.states()}"
    if moving or _something_is_due(house, GREETING_SECONDS if house.preloads else 0.0):
        return ""
    for job in view.jobs:
        doubted = job.model in engine.dispatcher._box.loads._doubts and _something_is_due(house, SETTLE)
        if job.model not in _spoken_to(house) and not doubted:
            return f"the job for {job.model} waits for nothing: {engine.states()}"
    return ""


def _moving(house: House) -> bool:
    """Whether a model's process is coming or going."""
    fleet = house.rig.service.engine.fleet
    return any(server.state in (State.STARTING, State.STOPPING) for server in fleet.values())


def _something_is_due(house: House, within: float) -> bool:
    """Whether there is a timer that ends within so many seconds; 0 = in this turn of the reactor."""
    until = house.rig.reactor.seconds() + within
    return any(call.getTime() <= until for call in house.rig.reactor.getDelayedCalls())


def _spoken_to(house: House) -> set[str]:
    """The models whose servers are asked something, or about to be."""
    lines = {line.model for line in house.lines if line.asked or line.ending}
    return lines | set(house.wanted_lines())


def states_are_those_of_the_processes(house: House) -> str:
    """A model is stopped when no child of it lives, and has one child otherwise."""
    alive = Counter(model_of(child) for child in house.rig.children.alive)
    states = house.rig.service.engine.states()
    if states.keys() != house.plan.models.keys():
        return f"shown are {sorted(states)}, configured are {sorted(house.plan.models)}"
    wrong = {name: state for name, state in states.items() if (state != "stopped") != (alive[name] == 1)}
    return f"{wrong} and living: {dict(alive)}" if wrong or max(alive.values(), default=0) > 1 else ""


def counters_are_what_happened(house: House) -> str:
    """Rows tell of the same dispatches, departures and answers; calls that only look leave no rows."""
    counted, rows = house.counters(), house.rig.rows
    flights, looks = len(house.rig.service._around.inflight), house.looks_due()
    dispatched = sum(bool({"serial_score", "fifo_priority"} & row.metadata.keys()) for row in rows)
    most = dispatched if house.only_serial else len(rows)  # fifo's verdict is in the rows it granted only
    abandoned = sum("while queued" in row.error_msg for row in rows)
    answered = Counter(f"requests_total {row.resp_status_code}" for row in rows)
    brackets = {
        "dispatched_total": (dispatched, most + flights + looks + house.preloads),
        "abandoned_total": (abandoned, abandoned + looks + house.preloads),
        "requests_total": (len(rows), len(rows) + looks),
        # Whose server had died unnoticed has it loaded again, as part of the same job.
        "swaps_total": (0, counted["dispatched_total"] + house.refusals),
        "model_load_seconds_count": (0, counted["swaps_total"]),
        "queue_wait_seconds_count": (counted["dispatched_total"], counted["dispatched_total"]),
    }
    wrong = [
        f"{name} is {counted[name]}, not {low}..{high}"
        for name, (low, high) in brackets.items()
        if not low <= counted[name] <= high
    ]
    wrong += [
        f"{code}: {counted[code]}, not {least}" for code, least in answered.items() if counted[code] < least
    ]
    return "; ".join(wrong)


def no_child_without_a_load(house: House) -> str:
    """Each start belongs to a load that a ticket needed, or to a reload that replaced one under way."""
    starts, loads = len(house.rig.children.started), house.counters()["swaps_total"]
    spare = house.reloads * 3
    return "" if starts <= loads + spare else f"{starts} starts, {loads} loads, {house.reloads} reloads"


def rows_are_sane(house: House) -> str:
    """No time is negative, whatever the clock on the wall did."""
    odd = [row for row in house.rig.rows[-3:] if row.duration_ms < 0 or row.resp_status_code < 100]
    return f"odd rows: {odd}" if odd else ""


def callers_get_what_they_may_ask_for(house: House) -> str:
    """Rows know whose they are; who may only be batch is no more, unless somebody else has moved him."""
    rows = house.rig.rows
    owners, due = Counter(row.metadata.get("caller", "") for row in rows), Counter[str]()
    due.update(guest.caller for guest in house.guests)
    wrong = [f"{count} rows of {name}, who came {due[name]} times" for name, count in (owners - due).items()]
    high = [row for row in rows if row.metadata.get("caller") == "low" and not house.moved]
    wrong += [f"too high: {row}" for row in high if row.metadata.get("serial_band", "batch") != "batch"]
    return "; ".join(wrong)


TRUTHS: tuple[Truth, ...] = (
    nothing_was_seen,
    each_request_is_in_flight_or_has_its_row,
    one_model_at_a_time,
    nobody_waits_for_nothing,
    states_are_those_of_the_processes,
    counters_are_what_happened,
    no_child_without_a_load,
    rows_are_sane,
    callers_get_what_they_may_ask_for,
)
