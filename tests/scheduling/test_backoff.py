"""How long a model that fails to load is left alone."""

from __future__ import annotations

import pytest

from llamaswap.scheduling.backoff import Backoff, pause_after


def failed(times: int, *, now: float = 0.0) -> Backoff:
    backoff = Backoff()
    for _ in range(times):
        backoff.failed("A", "exited with 1", ("first", "last"), now)
    return backoff


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(0, 0), (1, 0), (2, 0), (3, 5), (4, 10), (5, 20), (6, 40), (7, 80), (8, 160), (9, 300), (10, 300)],
)
def test_the_pause_doubles_from_five_seconds_to_five_minutes(failures: int, seconds: float) -> None:
    assert pause_after(failures) == seconds


def test_the_pause_stays_at_its_cap_for_ever() -> None:
    assert pause_after(10**9) == 300.0


def test_two_failures_close_nothing() -> None:
    assert failed(2).refusal("A", 0.0) is None


def test_the_third_failure_closes_the_model_for_five_seconds() -> None:
    backoff = failed(3, now=100.0)

    assert backoff.refusal("A", 100.0) is not None
    assert backoff.refusal("A", 104.999) is not None
    assert backoff.refusal("A", 105.0) is None


def test_other_models_stay_open() -> None:
    assert failed(3).refusal("B", 0.0) is None


def test_a_fourth_failure_after_the_pause_closes_it_for_ten() -> None:
    backoff = failed(3)
    backoff.failed("A", "again", (), 5.0)

    assert backoff.refusal("A", 14.9) is not None
    assert backoff.refusal("A", 15.0) is None


def test_one_success_forgets_everything() -> None:
    backoff = failed(9)

    backoff.succeeded("A")
    assert backoff.refusal("A", 0.0) is None

    backoff.failed("A", "exited", (), 0.0)
    assert backoff.refusal("A", 0.0) is None


def test_a_success_of_a_model_that_never_failed_is_nothing_special() -> None:
    Backoff().succeeded("A")


@pytest.mark.parametrize(("now", "retry_after"), [(0.0, 5), (0.1, 5), (3.9, 2), (4.0, 1), (4.99, 1)])
def test_the_refusal_says_when_to_come_back(now: float, retry_after: int) -> None:
    refusal = failed(3).refusal("A", now)

    assert refusal is not None
    assert (refusal.status, refusal.retry_after) == (503, retry_after)
    assert (b"Retry-After", str(retry_after).encode()) in refusal.headers()


def test_the_refusal_tells_the_cause_and_the_last_output() -> None:
    backoff = failed(3)
    backoff.failed("A", "killed by SIGKILL", ("out of memory",), 5.0)

    refusal = backoff.refusal("A", 6.0)

    assert refusal is not None
    assert "A keeps failing" in refusal.message
    assert "killed by SIGKILL" in refusal.message
    assert "out of memory" in refusal.message
    assert "exited with 1" not in refusal.message
