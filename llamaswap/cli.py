"""`llama-swap`: the same daemon for people who come from the Go program, with its flags."""

from __future__ import annotations

import atexit
import io
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from twisted.logger import globalLogBeginner

import llamaswap
from llamaswap.config.mistakes import ConfigRejected
from llamaswap.listening import BadAddress
from llamaswap.service import CannotStart
from llamaswap.tap import make_daemon, make_plan
from llamaswap.telemetry.printing import Printer, writing_to
from llamaswap.tls import BadCertificate
from llamaswap.tools.commands import COMMANDS, run, usage

USAGE = """\
usage: llama-swap --config FILE [--config-dir DIR] [--listen ADDRESS]...

  -config FILE       configuration (YAML)
  -config-dir DIR    directory whose *.yml and *.yaml files are merged in
  -listen ADDRESS    host:port, :port or a Twisted endpoint; may be repeated
                     (default: the sockets that systemd has opened, else 127.0.0.1:8080)
  -watch-config      reload when the configuration changes; SIGHUP does so in any case
  -tls-cert-file FILE, -tls-key-file FILE
                     speak TLS (default address 127.0.0.1:8443)
  -version           print the version and leave

Flags may be written with one or two dashes, as "-flag value" or "-flag=value".

Questions about a configuration or a trace, with --help for each:
""" + usage()

VALUES = ("config", "config-dir", "listen", "tls-cert-file", "tls-key-file")
INTERRUPTED = 128 + signal.SIGINT  # as shells tell it

SWITCHES = ("watch-config", "version", "help", "h")

_TRUTHS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}


class BadFlags(Exception):
    """The command line cannot be understood: exit code 2."""


@dataclass(slots=True)
class Flags:
    """A parsed command line."""

    values: dict[str, str] = field(default_factory=dict)  # the last one of each flag that takes a value
    listen: list[str] = field(default_factory=list)
    switches: dict[str, bool] = field(default_factory=dict)

    def value(self, name: str) -> str:
        """Return what a flag was given, '' for nothing."""
        return self.values.get(name, "")

    def is_on(self, *names: str) -> bool:
        """Return whether one of these switches is on."""
        return any(self.switches.get(name, False) for name in names)


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
        if name in SWITCHES:
            flags.switches[name] = _truth(word, value if equals else "true")
        elif name in VALUES:
            if not equals and not words:
                raise BadFlags(f"flag needs an argument: -{name}")
            value = value if equals else words.pop(0)
            flags.values[name] = value
            if name == "listen":
                flags.listen.append(value)
        else:
            raise BadFlags(f"flag provided but not defined: -{name}")
    return flags


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the daemon until it is told to stop, or answer a question about a configuration.

    Exits with 0, 1 (cannot run, or the configuration has mistakes), 2 (bad flags) or 130 (Ctrl-C, before
    the daemon heeds it or while a question is answered).
    """
    try:
        _main(sys.argv[1:] if arguments is None else list(arguments))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _main(words: Sequence[str]) -> None:
    if words and words[0] in COMMANDS:
        answer = io.StringIO()
        code = run(words, answer, sys.stderr or io.StringIO(), os.environ)
        sys.exit(code if _say(answer.getvalue()) else 1)
    try:
        flags = parse_flags(words)
        _refuse_strange_word(words)
    except BadFlags as bad:
        print(f"{bad}\n{USAGE}", end="", file=sys.stderr)
        sys.exit(2)
    if flags.is_on("version"):
        text = f"version: {llamaswap.__version__} (unknown), built at unknown\n"  # in llama-swap's form
    elif flags.is_on("help", "h"):
        text = USAGE
    else:
        _run(flags)
        return
    if not _say(text):
        sys.exit(1)


def _refuse_strange_word(words: Sequence[str]) -> None:
    """Words behind the flags mean nothing, as in Go; the first of all was meant for something."""
    if words and not words[0].startswith("-"):
        known = ", ".join(COMMANDS)
        raise BadFlags(f"{words[0]!r} is no command ({known}); a configuration is named with --config")


def _run(flags: Flags) -> None:
    _choose_reactor()
    try:
        plan = make_plan(
            flags.value("config"),
            flags.value("config-dir"),
            [address for address in flags.listen if address],
            watch=flags.is_on("watch-config"),
            tls=(flags.value("tls-cert-file"), flags.value("tls-key-file")),
            environ=os.environ,
        )
        daemon = make_daemon(plan)
        # The service filters and keeps its lines itself; what it keeps for `/logs` is what we print.
        globalLogBeginner.beginLoggingTo([], redirectStandardIO=False)
        from twisted.internet import reactor

        if sys.stdout is not None:  # it was open when we were started
            printer = Printer(writing_to(sys.stdout.fileno()), reactor)
            atexit.register(printer.finish)  # however it ends, short of being killed
            daemon.books.combined.subscribe(printer.take)
        daemon.lines.alone = True
        daemon.startService()
    except (ConfigRejected, BadAddress, BadCertificate, CannotStart) as why:
        _fail(str(why))

    reactor.addSystemEventTrigger("before", "shutdown", daemon.stopService)
    reactor.run()


def _choose_reactor() -> None:
    """Run on the quick reactor where there is one, unless something has chosen another."""
    if sys.platform == "linux" and "twisted.internet.reactor" not in sys.modules:
        from llamaswap import polling

        polling.install()


def _fail(why: str) -> NoReturn:
    print(why, file=sys.stderr)
    sys.exit(1)


def _say(text: str) -> bool:
    """Print what was asked for; False if it could not all be written.

    A reader that has seen enough, like `head`, is told nothing; names that its encoding lacks are escaped.
    """
    out = sys.stdout
    if out is None:  # it was closed when we were started
        return True
    if isinstance(out, io.TextIOWrapper) and out.errors == "strict":
        out.reconfigure(errors="backslashreplace")
    try:
        out.write(text)
        out.flush()
    except OSError as why:
        if not isinstance(why, BrokenPipeError):
            print(f"cannot write the answer: {why.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())  # what is left is not tried again at the end
        return False
    return True


def _truth(word: str, value: str) -> bool:
    if value not in _TRUTHS:
        raise BadFlags(f"invalid boolean value in {word}")
    return _TRUTHS[value]
