"""What is made of the samples of a day."""

from __future__ import annotations

import pytest

from bench.endurance import MIB, Sample, curve, growth
from bench.endurance_traffic import Traffic


def samples(*memories: int, descriptors: int = 20) -> list[Sample]:
    """One a second, with so many bytes each."""
    return [
        Sample(
            at=float(number + 1),
            memory=memory,
            descriptors=descriptors,
            threads=3,
            waiting=number % 3,
            swaps=number,
            answered=10 * number,
        )
        for number, memory in enumerate(memories)
    ]


def traffic(*answers: tuple[float, float]) -> Traffic:
    """Clients whose answers were there at these moments, after these seconds."""
    done = Traffic(0)
    done._took.extend(answers)
    return done


def test_what_was_fetched_while_it_warmed_up_is_no_growth() -> None:
    flat = samples(1 * MIB, 30 * MIB, *[40 * MIB] * 8)

    grown = growth(flat, traffic())

    assert grown.memory == 0
    assert grown.descriptors == grown.threads == grown.latency == 0
    assert grown.most_waiting == 2


def test_a_leak_shows() -> None:
    grown = growth(samples(*(number * MIB for number in range(40))), traffic())

    assert grown.memory == pytest.approx(23 * MIB, abs=MIB)


def test_slower_answers_show() -> None:
    answers = [(at / 10, 0.1 if at < 300 else 0.6) for at in range(400)]

    assert growth(samples(*[MIB] * 40), traffic(*answers)).latency == pytest.approx(0.5)


def test_the_picture_has_a_day_on_its_axis() -> None:
    drawn = curve(samples(*[MIB] * 241))

    assert drawn.series["memory, MiB"][0] == (0.0, 1.0)
    hour, memory = drawn.series["memory, MiB"][-1]
    assert (round(hour, 6), memory) == (24.0, 1.0)
    assert drawn.title == "2 400 requests and 240 loads in 241 s"
    assert "6 min" in drawn.x_label


def test_no_answers_take_no_time() -> None:
    assert traffic().percentile(0.99, 0.0, 10.0) == 0.0
