"""What a visit has to say in the end."""

from __future__ import annotations

import pytest

from llamaswap.activity.record import Activity
from llamaswap.errors import DeadlinePassed, UnknownModel
from llamaswap.http1.heads import ResponseHead
from llamaswap.leases import Abandoned, Lease
from llamaswap.rendering import render
from llamaswap.scheduling.vocabulary import Band, Ticket, Verdict
from llamaswap.web.visit import Visit
from support.processes_fakes import Rig

SERIAL = {
    "serial_priority": "5",
    "serial_band": "normal",
    "serial_queue_wait_ms": "2000",
    "serial_score": "5.033",
}
TICKET = Ticket(number=1, model="m", priority=5, arrived=100.0)


def visit() -> Visit:
    """Somebody who came at 100 s."""
    return Visit(model="m", req_path="/v1/x", began=100.0)


def row_of(guest: Visit, *, lasted: float) -> Activity:
    """The row of a visit that ended when seven seconds of our era had passed."""
    guest.ends(lasted=lasted, ended=7.0)
    return guest.activity()


def verdict(*, scored: bool = True) -> Verdict:
    """A verdict of `serial`, whose row says `SERIAL`, or of `fifo`."""
    thousandths = 5033 if scored else None
    return Verdict(priority=5, band=Band.NORMAL, waited_us=2_000_000, thousandths=thousandths)


def lease(given: Verdict | None, load: float) -> Lease:
    """A lease of a server."""
    return Lease(server=Rig().server, verdict=given, load=load)


def test_nothing_but_an_arrival_is_an_internal_error() -> None:
    row = row_of(visit(), lasted=1.5)

    assert (row.resp_status_code, row.duration_ms, row.ended) == (500, 1500, 7.0)
    assert row.metadata == {}


def test_an_answered_visit_carries_what_the_meter_saw() -> None:
    guest = visit()
    guest.dispatched(verdict(), 102.0)
    guest.leased(lease(verdict(), 0.5))
    head = ResponseHead(200, b"OK", (1, 1), ((b"Content-Type", b"application/json"),))
    guest.witness.head(head)
    guest.witness.data(b'{"usage":{"prompt_tokens":7}}')
    guest.answered(head, "")

    row = row_of(guest, lasted=3.0)

    assert (row.resp_status_code, row.resp_content_type, row.error_msg) == (200, "application/json", "")
    assert row.usage.input_tokens == 7
    assert row.metadata == {**SERIAL, "serial_load_ms": "500"}


def test_a_visit_that_was_dispatched_and_got_no_lease_tells_how_long_it_loaded() -> None:
    guest = visit()
    guest.dispatched(verdict(), 102.0)
    guest.abandoned(Abandoned(TICKET, verdict(), 3.25, {}), "abandoned")

    row = row_of(guest, lasted=3.25)

    assert row.resp_status_code == 499
    assert row.metadata == {**SERIAL, "serial_load_ms": "1250"}


def test_a_visit_that_never_left_the_queue_tells_how_long_it_waited() -> None:
    guest = visit()
    known = {"serial_priority": "5", "serial_band": "normal", "serial_queue_wait_ms": "3999"}
    guest.abandoned(Abandoned(TICKET, None, 3.9999, known), "abandoned by its client")

    row = row_of(guest, lasted=4.0)

    assert (row.resp_status_code, row.error_msg) == (499, "abandoned by its client while queued, after 4.0 s")
    assert row.metadata == known


@pytest.mark.parametrize("granted", [True, False])
def test_fifo_says_its_priority_only_of_calls_that_it_granted(*, granted: bool) -> None:
    guest = visit()
    guest.dispatched(verdict(scored=False), 102.0)
    if granted:
        guest.leased(lease(verdict(scored=False), 0.5))

    assert row_of(guest, lasted=1.0).metadata == ({"fifo_priority": "5"} if granted else {})


def test_a_visit_past_the_queue_has_nothing_to_tell_of_it() -> None:
    guest = visit()
    guest.leased(lease(None, 0.0))

    assert row_of(guest, lasted=1.0).metadata == {}


@pytest.mark.parametrize(
    ("accept", "kind", "words"),
    [
        ("", "application/json", "no router for requested model"),
        ("text/plain", "text/plain", "404 Not Found"),
    ],
)
def test_a_refused_visit_has_the_words_that_can_be_read_out_of_its_answer(
    accept: str, kind: str, words: str
) -> None:
    guest = visit()
    guest.refused(UnknownModel(), render(UnknownModel(), accept))

    row = row_of(guest, lasted=1.0)

    assert (row.resp_status_code, row.error_msg) == (404, words)
    assert row.resp_content_type == kind


@pytest.mark.parametrize(
    ("status", "error", "well"),
    [(200, "", True), (201, "", True), (200, "the client left", False), (404, "", False), (101, "", True)],
)
def test_what_went_well_needs_no_word(*, status: int, error: str, well: bool) -> None:
    guest = visit()
    guest.answered(ResponseHead(status, b"", (1, 1), ()), error)

    assert guest.went_well is well


def test_an_encoded_answer_went_well_only_if_its_bytes_are_what_it_says() -> None:
    guest = visit()
    head = ResponseHead(200, b"OK", (1, 1), ((b"Content-Encoding", b"gzip"),))
    guest.witness.head(head)
    guest.witness.data(b"not zipped")
    guest.answered(head, "")

    assert not guest.went_well
    assert row_of(guest, lasted=1.0).error_msg.startswith("response decompression failed: ")


def test_a_row_is_worked_out_once() -> None:
    guest = visit()

    assert row_of(guest, lasted=1.0) is guest.activity()


def test_a_visit_that_was_turned_away_tells_how_long_it_waited() -> None:
    guest, refusal = visit(), DeadlinePassed(2.0)
    refusal.noted = {"serial_priority": "5", "serial_band": "normal", "serial_queue_wait_ms": "2000"}
    guest.refused(refusal, render(refusal))

    assert row_of(guest, lasted=2.0).metadata == refusal.noted


def test_a_visit_names_its_caller() -> None:
    guest = visit()
    guest.caller = "pro"
    guest.leased(lease(verdict(), 0.0))

    assert row_of(guest, lasted=1.0).metadata == {"caller": "pro", **SERIAL, "serial_load_ms": "0"}
