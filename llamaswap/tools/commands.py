"""`llama-swap dump` and its like: a command's words in, text and an exit code out.

Exit codes: 0, 1 (the configuration or a trace can't be used, or there is no such model), 2 (the
command line can't be understood).
"""

from __future__ import annotations

import argparse
import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from llamaswap.config.load import load
from llamaswap.config.mistakes import ConfigRejected
from llamaswap.config.model import Config
from llamaswap.simulation.records import Unusable
from llamaswap.tools.against import NotAsked, ask, changes, ports_of
from llamaswap.tools.dump import dump
from llamaswap.tools.explain import NoSuchModel, eviction, eviction_facts, explain, explanation_facts
from llamaswap.tools.schema import schema_text
from llamaswap.tools.validate import validate
from llamaswap.tools.wording import describe

API_KEY = "LLAMASWAP_API_KEY"
"""The environment variable that holds the key of a daemon that is asked."""

GOOD, UNUSABLE, MISUSED = 0, 1, 2
"""Exit codes."""


@dataclass(frozen=True, slots=True)
class _Command:
    """What one word does; its answer is the exit code."""

    help: str
    run: Callable[[argparse.Namespace, TextIO, TextIO, Mapping[str, str]], int]
    reads_config: bool = True
    names_model: bool = False
    compares: bool = False  # with a running daemon
    module: str | None = (
        None  # what knows its arguments; only imported when it is asked, unlike by the daemon
    )


def run(words: Sequence[str], out: TextIO, err: TextIO, environ: Mapping[str, str]) -> int:
    """Carry out one command and return the exit code.

    Args:
        words: the command's name, one of `COMMANDS`, and its arguments.
        out: for what was asked for.
        err: for complaints.
        environ: what `${env.NAME}` in a configuration can refer to.
    """
    with redirect_stdout(out), redirect_stderr(err):
        try:
            command, options = _parse(words)
        except SystemExit as finished:
            return finished.code if isinstance(finished.code, int) else MISUSED
    try:
        return command.run(options, out, err, environ)
    except (ConfigRejected, NoSuchModel, NotAsked, Unusable) as why:
        err.write(f"{why}\n")
        return UNUSABLE


def usage() -> str:
    """One line for each command, for the program's own help."""
    return "".join(f"  {name:<10} {command.help}\n" for name, command in COMMANDS.items())


def _validate_against(options: argparse.Namespace, out: TextIO, environ: Mapping[str, str]) -> int:
    running = ask(options.against, environ.get(API_KEY, ""))
    config = load(options.file, options.config_dir, environ, ports=ports_of(running))
    out.write("".join(f"{change}\n" for change in changes(running, config)))
    return GOOD


def _parse(words: Sequence[str]) -> tuple[_Command, argparse.Namespace]:
    """Raises:
    SystemExit: help was asked for and given, or the words can't be understood.
    """
    names = argparse.ArgumentParser(prog="llama-swap", add_help=False)
    names.add_argument("command", choices=COMMANDS)
    name = names.parse_args(words[:1]).command
    command = COMMANDS[name]
    parser = argparse.ArgumentParser(prog=f"llama-swap {name}", description=command.help, allow_abbrev=False)
    if command.reads_config:
        _add_sources(parser)
    if command.names_model:
        _add_question(parser)
    if command.compares:
        parser.add_argument(
            "--against",
            metavar="URL",
            help=f"tell what a reload would restart in the daemon there (API key: ${API_KEY})",
        )
    if command.module is not None:
        importlib.import_module(command.module).add_arguments(parser)
    options = parser.parse_intermixed_args(words[1:])
    if command.reads_config and options.config is not None:
        if options.file is not None:
            parser.error("which configuration? Give FILE or --config, not both")
        options.file = options.config
    if command.reads_config and options.file is None and options.config_dir is None:
        parser.error("which configuration? Give FILE, --config-dir DIR or both")
    return command, options


def _add_sources(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", nargs="?", type=Path, help="configuration (YAML)")
    parser.add_argument("--config", "-config", metavar="FILE", type=Path, help="the same as FILE")
    parser.add_argument(
        "--config-dir",
        "-config-dir",
        metavar="DIR",
        type=Path,
        help="directory whose *.yml and *.yaml files are merged in",
    )


def _add_question(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="id or alias")
    parser.add_argument(
        "--running",
        metavar="A,B",
        action="append",
        help="ask what stops when MODEL is loaded while these run; may be repeated",
    )
    parser.add_argument("--json", action="store_true", help="for programs")


def _load(options: argparse.Namespace, environ: Mapping[str, str]) -> Config:
    return load(options.file, options.config_dir, environ)


def _dump(options: argparse.Namespace, out: TextIO, _err: TextIO, environ: Mapping[str, str]) -> int:
    out.write(dump(_load(options, environ)))
    return GOOD


def _explain(options: argparse.Namespace, out: TextIO, _err: TextIO, environ: Mapping[str, str]) -> int:
    config = _load(options, environ)
    running = None if options.running is None else _running(config, options.running)
    answer = None if running is None else eviction(config, options.model, running)
    if not options.json:
        out.write(describe(explain(config, options.model), answer))
    elif answer is not None:
        out.write(json.dumps(eviction_facts(answer)) + "\n")
    else:
        out.write(json.dumps(explanation_facts(explain(config, options.model)), indent=2) + "\n")
    return GOOD


def _running(config: Config, given: Sequence[str]) -> list[str]:
    """The names in a list; one that holds a comma itself must be given alone."""
    names: list[str] = []
    for one in given:
        whole = one in config.models or one in config.names
        names += [one] if whole else [name.strip() for name in one.split(",") if name.strip()]
    return names


def _validate(options: argparse.Namespace, out: TextIO, _err: TextIO, environ: Mapping[str, str]) -> int:
    if options.against is not None:
        return _validate_against(options, out, environ)
    findings = validate(options.file, options.config_dir, environ)
    out.write(findings.text())
    return GOOD if findings.usable else UNUSABLE


def _schema(_options: argparse.Namespace, out: TextIO, _err: TextIO, _environ: Mapping[str, str]) -> int:
    out.write(schema_text())
    return GOOD


def _simulate(options: argparse.Namespace, out: TextIO, err: TextIO, environ: Mapping[str, str]) -> int:
    from llamaswap.tools import simulate

    simulate.run(options, out, err, environ)
    return GOOD


def _tune(options: argparse.Namespace, out: TextIO, err: TextIO, environ: Mapping[str, str]) -> int:
    from llamaswap.tools import tune

    tune.run(options, out, err, environ)
    return GOOD


COMMANDS: Mapping[str, _Command] = {
    "dump": _Command("print the configuration that is in effect, as JSON, secrets included", _dump),
    "explain": _Command("say what a model's configuration comes to", _explain, names_model=True),
    "validate": _Command(
        "name every mistake in a configuration, or what a reload with it would do", _validate, compares=True
    ),
    "schema": _Command("print a JSON Schema of the configuration, for editors", _schema, reads_config=False),
    "simulate": _Command(
        "play a trace of requests under some settings, side by side with fifo",
        _simulate,
        reads_config=False,
        module="llamaswap.tools.simulate",
    ),
    "tune": _Command(
        "try many settings on a trace of requests, and recommend one",
        _tune,
        reads_config=False,
        module="llamaswap.tools.tune",
    ),
}
"""Every command by its name, in the order of the help."""
