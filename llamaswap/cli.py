"""`llama-swap`: the same daemon for people who come from the Go program, with its flags."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NoReturn

from twisted.logger import globalLogBeginner

import llamaswap
from llamaswap.config.mistakes import ConfigRejected
from llamaswap.listening import BadAddress
from llamaswap.service import CannotStart
from llamaswap.tap import load_config, make_daemon

USAGE = """\
usage: llama-swap --config FILE [--config-dir DIR] [--listen ADDRESS]...

  -config FILE       configuration (YAML)
  -config-dir DIR    directory whose *.yml and *.yaml files are merged in
  -listen ADDRESS    host:port, :port or a Twisted endpoint; may be repeated (default 127.0.0.1:8080)
  -version           print the version and leave

Flags may be written with one or two dashes, as "-flag value" or "-flag=value".
"""

VALUES = ("config", "config-dir", "listen")


class BadFlags(Exception):
    """The command line cannot be understood: exit code 2."""


@dataclass(slots=True)
class Flags:
    """A parsed command line."""

    config: str | None = None
    config_dir: str | None = None
    listen: list[str] = field(default_factory=list)
    version: bool = False
    help: bool = False


def parse_flags(arguments: Sequence[str]) -> Flags:
    """Read flags as Go's flag package does: it stops at the first word that is none.

    Raises:
        BadFlags: an unknown flag, or one without its value.
    """
    flags = Flags()
    words = list(arguments)
    while words and words[0].startswith("-") and words[0] not in ("-", "--"):
        word = words.pop(0)
        name, equals, value = word.removeprefix("-").removeprefix("-").partition("=")
        if name in ("h", "help"):
            flags.help = True
        elif name == "version":
            flags.version = _truth(word, value if equals else "true")
        elif name in VALUES:
            if not equals and not words:
                raise BadFlags(f"flag needs an argument: -{name}")
            _set(flags, name, value if equals else words.pop(0))
        else:
            raise BadFlags(f"flag provided but not defined: -{name}")
    return flags


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the daemon until it is told to stop; exits with 0, 1 (cannot run) or 2 (bad flags)."""
    try:
        flags = parse_flags(sys.argv[1:] if arguments is None else arguments)
    except BadFlags as bad:
        print(f"{bad}\n{USAGE}", end="", file=sys.stderr)
        sys.exit(2)
    if flags.version:
        print(f"version: {llamaswap.__version__} (llamaswap for Twisted)")
    elif flags.help:
        print(USAGE, end="")
    else:
        _run(flags)


def _run(flags: Flags) -> None:
    try:
        config = load_config(flags.config, flags.config_dir, os.environ)
        daemon = make_daemon(config, flags.listen)
        # The service filters and keeps its lines itself; what it keeps for `/logs` is what we print.
        globalLogBeginner.beginLoggingTo([], redirectStandardIO=False)
        daemon.books.combined.subscribe(_print)
        daemon.startService()
    except (ConfigRejected, BadAddress, CannotStart) as why:
        _fail(str(why))
    from twisted.internet import reactor

    reactor.addSystemEventTrigger("before", "shutdown", daemon.stopService)
    reactor.run()


def _fail(why: str) -> NoReturn:
    print(why, file=sys.stderr)
    sys.exit(1)


def _set(flags: Flags, name: str, value: str) -> None:
    if name == "config":
        flags.config = value
    elif name == "config-dir":
        flags.config_dir = value
    else:
        flags.listen.append(value)


def _truth(word: str, value: str) -> bool:
    if value not in ("true", "false"):
        raise BadFlags(f"invalid boolean value in {word}")
    return value == "true"


def _print(data: bytes) -> None:
    with suppress(OSError):  # whoever read our output may have gone
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
