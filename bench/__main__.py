"""Measure everything, or some of it, and say what was promised.

python -m bench
python -m bench --only latency,cpu_request --quick
python -m bench --only growth --plots docs/plots

A scenario is a module of `bench.scenarios`, a curve one of `bench.growth`; `--only` takes the names of
both.  A whole run writes its results and pictures down; one of some things does so if it is told where.

Other proxies that run already take part with BENCH_PEER=name=port[,name=port]; they must serve a
model `bench` from http://127.0.0.1:19300 (BENCH_UPSTREAM_PORT).  All their processes that listen on the
port are counted, and kept on one processor meanwhile, as the others are.

The exit code is 1 if something could not be measured, not if a promise is broken.
"""

from __future__ import annotations

import argparse
import pkgutil
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from pathlib import Path

import bench.growth
import bench.scenarios
from bench.figures import Curve, Figure, print_table, write_results
from bench.launching import Failed, progress
from bench.report import fill

ROUNDS, QUICK_ROUNDS = 7, 3

RESULTS, PLOTS, DOCUMENT = Path("bench/results.json"), Path("docs/plots"), Path("docs/performance.md")

INTERRUPTED = 130  # as a shell has it

ORDER = (
    "latency",
    "cpu_request",
    "cpu_chunk",
    "chunk_delay",
    "serial_gap",
    "swap",
    "dispatch",
    "waiting_memory",
    "big_body",
    "abort",
    "idle",
)
"""Scenarios as a reader wants them; those that are not in it come last."""


class Unknown(Exception):
    """A name on the command line that is neither a scenario's nor a curve's."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit code."""
    options = _options(arguments)
    try:
        scenarios, curves = chosen(options.only)
    except Unknown as unknown:
        print(unknown, file=sys.stderr)
        return 2
    rounds = options.rounds or (QUICK_ROUNDS if options.quick else ROUNDS)
    failures: list[str] = []
    try:
        figures = [one for name in scenarios for one in _figures(name, rounds, options.quick, failures)]
        grown = [one for name in curves for one in _curves(name, options.quick, failures)]
    except KeyboardInterrupt:
        return INTERRUPTED
    print_table(figures)
    if options.results or not options.only:
        write_results(options.results or RESULTS, figures, grown, rounds=rounds, quick=options.quick)
    if grown and (options.plots or not options.only):
        _draw(grown, options.plots or PLOTS, failures)
    if not options.only and not options.results:
        fill(DOCUMENT, RESULTS)
    for failure in failures:
        print(f"could not measure {failure}", file=sys.stderr)
    return 1 if failures else 0


def chosen(only: str) -> tuple[list[str], list[str]]:
    """Return the names of scenarios and of curves to measure, in order.

    Args:
        only: names separated by commas, `growth` for every curve; '' = everything.

    Raises:
        Unknown: there is none of a name.
    """
    scenarios, curves = (
        sorted(_modules(bench.scenarios.__path__), key=_place),
        _modules(bench.growth.__path__),
    )
    wanted = set(filter(None, only.split(",")))
    if unknown := wanted - {*scenarios, *curves, "growth"}:
        known = ", ".join([*scenarios, *curves])
        raise Unknown(f"unknown: {', '.join(sorted(unknown))}; there are {known}, and growth for the latter")
    if not wanted:
        return scenarios, curves
    return (
        [name for name in scenarios if name in wanted],
        [name for name in curves if name in wanted or "growth" in wanted],
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="", help="names of scenarios or curves, separated by commas")
    parser.add_argument("--rounds", type=int, default=0, help=f"default {ROUNDS}, or {QUICK_ROUNDS} if quick")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and requests")
    parser.add_argument("--results", type=Path, help=f"where numbers go; of a whole run, {RESULTS}")
    parser.add_argument("--plots", type=Path, help=f"where pictures of curves go; of a whole run, {PLOTS}")
    return parser.parse_args(arguments)


def _modules(path: Iterable[str]) -> list[str]:
    return sorted(found.name for found in pkgutil.iter_modules(path))


def _place(name: str) -> tuple[int, str]:
    return (ORDER.index(name) if name in ORDER else len(ORDER), name)


def _figures(name: str, rounds: int, quick: bool, failures: list[str]) -> list[Figure]:
    """Measure one scenario; a failure is written down, and does not end the others."""
    measure: Callable[[int, bool], Figure | Iterable[Figure]] = import_module(
        f"bench.scenarios.{name}"
    ).measure
    progress(f"--- {name}")
    began = time.monotonic()
    try:
        measured = measure(rounds, quick)
        figures = [measured] if isinstance(measured, Figure) else list(measured)
    except Failed as why:
        failures.append(f"{name}: {why}")
        return []
    progress(f"--- {name}: {time.monotonic() - began:.0f} s")
    return figures


def _curves(name: str, quick: bool, failures: list[str]) -> list[Curve]:
    """Measure one curve, likewise."""
    measure: Callable[[bool], Curve | Iterable[Curve]] = import_module(f"bench.growth.{name}").measure
    progress(f"--- growth of {name}")
    began = time.monotonic()
    try:
        measured = measure(quick)
        curves = [measured] if isinstance(measured, Curve) else list(measured)
    except Failed as why:
        failures.append(f"growth of {name}: {why}")
        return []
    progress(f"--- growth of {name}: {time.monotonic() - began:.0f} s")
    return curves


def _draw(curves: Sequence[Curve], folder: Path, failures: list[str]) -> None:
    from bench.plots import draw  # matplotlib is needed for this only

    try:
        draw(curves, folder)
    except ImportError as why:
        failures.append(f"anything that could be drawn: {why}")


if __name__ == "__main__":
    sys.exit(main())
