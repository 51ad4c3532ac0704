"""Measure how loading and the eviction question grow with a configuration.

python bench/config_scale.py
python bench/config_scale.py --repeat 5 --check      # exit 1 if a promise is broken

Loading: models with 40 macros each.  The question: a matrix whose sets allow more and more
combinations, in four shapes, asked anew each time and with everything else running.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import perf_counter

from llamaswap.config.load import load_text
from llamaswap.config.model import MatrixConfig
from llamaswap.scheduling.matrix import MatrixPlanner

LOAD_LIMIT = 2.0  # seconds, for MOST_MODELS
ANSWER_LIMIT = 0.005  # seconds, for MOST_COMBINATIONS
MOST_MODELS = 500
MOST_COMBINATIONS = 10_000
MACROS = 40

RUNNING = 8
"""Models that run when a question is asked, where the shape does not need more."""


@dataclass(frozen=True, slots=True)
class Question:
    """A matrix, and what is asked of it."""

    shape: str
    combinations: int
    matrix: MatrixConfig
    target: str
    running: frozenset[str]


def many_models(count: int) -> str:
    """Return a configuration text."""
    lines = ["models:"]
    for number in range(count):
        lines += [f"  model-{number}:", "    macros:"]
        lines += [f"      m{macro}: {_macro_value(macro)}" for macro in range(1, MACROS + 1)]
        words = " ".join(f"--a{macro} ${{m{macro}}}" for macro in range(1, MACROS + 1))
        lines += [f"    cmd: ${{env.SERVER}} --port ${{PORT}} {words}", f"    aliases: [alias-{number}]"]
    return "\n".join(lines) + "\n"


def _macro_value(macro: int) -> str:
    """Every fourth one uses the one before it."""
    return f"x{macro}" if macro % 4 else f"${{m{macro - 1}}}{macro}"


def questions(combinations: int) -> Iterator[Question]:
    """Return one question of each shape."""
    width = round(combinations ** (1 / 4))
    parts = [[f"m{part}x{place}" for place in range(width)] for part in range(4)]
    product = " & ".join(f"({' | '.join(part)})" for part in parts)
    everything = frozenset(model for part in parts for model in part) - {"m0x0"}
    yield Question("product", combinations, _matrix(product), "m0x0", everything)

    shared = [f"m{place}" for place in range(width)]
    entangled = " & ".join([f"({' | '.join(shared)})"] * 4)
    yield Question("entangled", combinations, _matrix(entangled), "m0", frozenset(shared[1:]))

    quads = [
        " & ".join(f"m{(number * step) % 200}" for step in (1, 3, 7, 11)) for number in range(combinations)
    ]
    running = frozenset(f"m{7 * number + 1}" for number in range(RUNNING))
    yield Question("list", combinations, _matrix(" | ".join(quads)), "m0", running)
    with_all = _matrix(f"m0 & m22 & ({' | '.join(quads)})")
    yield Question("with all", combinations, with_all, "m0", running)


def _matrix(expression: str) -> MatrixConfig:
    return MatrixConfig(sets=(("s", expression),))


def best_of(repeat: int, job: Callable[[], object]) -> float:
    """Return the seconds of the fastest run."""
    return min(_timed(job) for _ in range(repeat))


def _timed(job: Callable[[], object]) -> float:
    start = perf_counter()
    job()
    return perf_counter() - start


def measure_loading(repeat: int) -> float:
    """Print a table; return the seconds of its last line."""
    print(f"loading, {MACROS} macros a model\n  models  seconds")
    seconds = 0.0
    for count in (MOST_MODELS // 8, MOST_MODELS // 4, MOST_MODELS // 2, MOST_MODELS):
        text = many_models(count)
        seconds = best_of(repeat, partial(load_text, text, environ={"SERVER": "llama-server"}))
        print(f"  {count:6}  {seconds:7.2f}")
    return seconds


def measure_answers(repeat: int) -> float:
    """Print a table; return the seconds of its slowest answer at full size."""
    print("\nthe eviction question\n  shape      combinations  first, ms  again, us")
    slowest = 0.0
    for combinations in (10, 100, 1000, MOST_COMBINATIONS):
        for question in questions(combinations):
            first = min(_first_answer(question) for _ in range(repeat))
            planner = MatrixPlanner(question.matrix)
            again = best_of(repeat + 1, partial(planner.make_room, question.target, question.running))
            print(f"  {question.shape:9}  {combinations:12}  {first * 1e3:9.3f}  {again * 1e6:9.2f}")
            slowest = max(slowest, first) if combinations == MOST_COMBINATIONS else slowest
    return slowest


def _first_answer(question: Question) -> float:
    planner = MatrixPlanner(question.matrix)
    return _timed(partial(planner.make_room, question.target, question.running))


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeat", type=int, default=3, help="the fastest of so many runs counts")
    parser.add_argument("--check", action="store_true", help="exit with 1 if it takes too long")
    options = parser.parse_args()
    loading, answer = measure_loading(options.repeat), measure_answers(options.repeat)
    print(f"\n{MOST_MODELS} models in {loading:.2f} s (at most {LOAD_LIMIT} s)")
    print(f"an answer in {answer * 1e3:.2f} ms (at most {ANSWER_LIMIT * 1e3:.0f} ms)")
    return int(options.check and (loading > LOAD_LIMIT or answer > ANSWER_LIMIT))


if __name__ == "__main__":
    sys.exit(main())
