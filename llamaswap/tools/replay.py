"""What `simulate` and `tune` ask for alike, and what they make of it: arrivals, and the box to play them on.

Knows the words of the command line; what a setting means, and what becomes of a request, is
`llamaswap.simulation`'s business.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from llamaswap.config.load import load
from llamaswap.config.model import NO_MAPPING, Config
from llamaswap.simulation.gathering import Gathered, gather
from llamaswap.simulation.mapping import OTHERS, Cost, TraceMapping, read_mapping
from llamaswap.simulation.packed import PackedArrivals
from llamaswap.simulation.placing import NOT_MEASURED, Costs
from llamaswap.simulation.plots import check
from llamaswap.simulation.progress import Report, bar
from llamaswap.simulation.records import BadLine, Unusable, number
from llamaswap.simulation.scenario import DEFAULT_LOAD, Scenario, box_of
from llamaswap.simulation.stored import measure
from llamaswap.simulation.traces import Format, Trace, open_trace


@dataclass(frozen=True, slots=True)
class Replay:
    """A trace and the box that it is played on."""

    arrivals: PackedArrivals
    box: Scenario
    notes: tuple[str, ...]  # what a reader of the numbers should know; a sentence each


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what both commands understand."""
    parser.add_argument(
        "--trace",
        metavar="[LABEL=]FILE",
        action="append",
        required=True,
        help="requests to replay: arrivals (CSV), Azure's CSV, BurstGPT's CSV, Mooncake's JSON lines, or the"
        " activity store of a daemon; several are laid over each other",
    )
    parser.add_argument(
        "--mapping",
        metavar="FILE",
        help="YAML, or its text if it begins with '{': what a trace's words mean here",
    )
    parser.add_argument("--config", "-config", metavar="FILE", type=Path, help="models, groups, scheduler")
    parser.add_argument("--config-dir", "-config-dir", metavar="DIR", type=Path, help="more of the same")
    parser.add_argument(
        "--measured",
        metavar="STORE",
        type=Path,
        help="an activity store that tells loads and speeds of this box",
    )
    parser.add_argument(
        "--load", metavar="[MODEL=]SECONDS", action="append", default=[], help="what a load takes (15)"
    )
    parser.add_argument(
        "--speed", type=_above_zero, default=1.0, help="requests come so many times as fast (1)"
    )
    parser.add_argument("--limit", type=_whole, help="read so many requests of each trace")
    parser.add_argument("--seed", type=int, default=0, help="of what a mapping leaves to chance (0)")
    parser.add_argument("--skip-bad", action="store_true", help="leave out lines that make no sense")
    parser.add_argument("--plot", metavar="FILE", type=Path, help="draw a picture: .svg or .png")
    parser.add_argument("--json", action="store_true", help="for programs")


def read(options: argparse.Namespace, environ: Mapping[str, str], err: TextIO) -> Replay:
    """Read everything that the command line names; `err` shows how far that is.

    Raises:
        Unusable: a trace, a mapping, an option or the place of the plot can't be used.
        ConfigRejected: the configuration can't be.
    """
    if options.plot is not None:
        check(options.plot)
    with bar(err, "reading") as progress:
        return _read(options, environ, progress)


def _read(options: argparse.Namespace, environ: Mapping[str, str], progress: Report) -> Replay:
    config = None
    if options.config is not None or options.config_dir is not None:
        config = load(options.config, options.config_dir, environ)
    traces = [open_trace(words) for words in options.trace]
    mapping = TraceMapping() if options.mapping is None else read_mapping(options.mapping)
    costs = _costs(options, mapping, traces)
    gathered = gather(
        traces,
        mapping,
        costs,
        names=config.names if config is not None else NO_MAPPING,
        seed=options.seed,
        speed=options.speed,
        limit=options.limit,
        skip_bad=options.skip_bad,
        progress=lambda done: progress(done, None),
    )
    box = _box(config, gathered.arrivals.models)
    known = {model: seconds for model in box.config.models if (seconds := costs.load(model)) is not None}
    parallel = {model: many for model in box.config.models if (many := costs.parallel(model)) is not None}
    box = replace(box, loads=known, parallel=parallel)
    return Replay(gathered.arrivals, box, tuple(_notes(gathered, known)))


def _box(config: Config | None, models: Sequence[str]) -> Scenario:
    if config is None:
        return box_of(models)
    for model in models:
        if model not in config.models:
            raise Unusable(
                f"the trace asks for {model!r}, which the configuration does not have:"
                " say in the mapping which model that is"
            )
    return Scenario(name="", config=config)


def _costs(options: argparse.Namespace, mapping: TraceMapping, traces: Sequence[Trace]) -> Costs:
    """Loads and speeds: of the command line, else of the mapping, else of a store."""
    said = dict(mapping.costs)
    for words in options.load:
        model, equals, seconds = words.rpartition("=")
        name = model if equals else OTHERS
        said[name] = replace(said.get(name, Cost()), load=_load(seconds))
    stores = [trace.path for trace in traces if trace.format is Format.STORE]
    store = options.measured or (stores[0] if stores else None)
    return Costs(said, NOT_MEASURED if store is None else measure(store))


def _load(text: str) -> float:
    try:
        return _above_zero(text)
    except argparse.ArgumentTypeError as why:
        raise Unusable(f"--load: {why}") from None


def _notes(gathered: Gathered, known: Mapping[str, float]) -> list[str]:
    notes = []
    unknown = [model for model in gathered.arrivals.models if model not in known]
    if unknown:
        notes.append(
            f"Nobody says how long a load of {', '.join(unknown)} takes: {DEFAULT_LOAD:g} s are assumed."
        )
    if gathered.skipped:
        notes.append(f"Lines that were left out because they made no sense: {gathered.skipped}.")
    if gathered.out_of_order:
        notes.append(f"Requests that stood behind later ones, put in their place: {gathered.out_of_order}.")
    return notes


def _above_zero(text: str) -> float:
    """A number above 0; argparse tells the words of what is raised otherwise."""
    try:
        value = number(text, "it")
    except BadLine:
        value = 0.0
    if value == 0:
        raise argparse.ArgumentTypeError(f"expected a number above 0, got {text!r}")
    return value


def _whole(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, got {text!r}")
    return int(text)
