"""The command line: every switch, with its help.

What the switches come to is `options`' business.
"""

from __future__ import annotations

import argparse
import json
from typing import Any, NoReturn

Numbers = tuple[float | None, ...]
"""One value for each start, the last one for all that follow; None = as if the switch were not given."""


def make_parser() -> argparse.ArgumentParser:
    """Every switch."""
    parser = _Parser(prog="python -m llamaswap.stub", description="An upstream without a model.")
    for title, add_to in _GROUPS.items():
        add_to(parser.add_argument_group(title))
    return parser


class _Parser(argparse.ArgumentParser):
    """Exact names only: an abbreviation would mean something else after the next new switch."""

    def __init__(self, **more: Any) -> None:
        super().__init__(allow_abbrev=False, **more)

    def error(self, message: str) -> NoReturn:  # type: ignore[explicit-override]  # typing_extensions is no stdlib
        """Say it in one line, in the words of a server's log."""
        self.exit(2, f"stub: bad command line: {message}\n")


def _of_the_process(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--port", type=int, required=True, help="where it listens; 0 = anywhere, its first line tells")
    add("--host", default="127.0.0.1", help="127.0.0.1, ::1 or :: (both families)")
    add("--alias", default="stub", help="the name it goes by in answers and records")
    add("--die-at", type=numbers, metavar="S", help="end so many seconds after the start")
    add("--code", type=numbers, metavar="N", help="exit code of that (1)")
    add("--sig", type=numbers, metavar="N", help="die by this signal instead")
    add("--bind-at", type=numbers, metavar="S", help="refuse connections for so many seconds")
    add("--ignore-term", action="store_true", help="ignore SIGTERM")
    add("--term-lag", type=numbers, metavar="S", help="seconds to leave after SIGTERM, serving meanwhile")
    add("--fork", action="count", default=0, help="run below a shell that does not exec; twice = two shells")
    add(
        "--vram",
        nargs=2,
        metavar=("FILE", "SIZE"),
        help="hold a lock; fail to start if another does",
    )
    add("--log-rate", type=numbers, metavar="L", help="lines a second to stdout and to stderr")
    add("--record", metavar="FILE", help="append a JSON line for each request, and for what happens")
    add("--argv", metavar="FILE", help="append its command line as a JSON list")
    add("--counter", metavar="FILE", help="count starts in it; the nth start takes the nth of several values")


def _of_health(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--load", type=numbers, metavar="S", help="503 for so many seconds")
    add("--health-code", type=numbers, metavar="C", help="what /health answers when loaded (200)")
    add("--health-lag", type=numbers, metavar="S", help="seconds that an answer of /health takes")


def _of_doors(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--key", metavar="K", help="demand `Authorization: Bearer K`")
    add("--key-but-health", action="store_true", help="not of who asks for /health")
    add("--only", metavar="PATHS", help="404 for all but these, separated by commas")


def _of_answers(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--tokens", type=numbers, metavar="N", help="how many words an answer has (5)")
    add("--gap", type=numbers, metavar="S", help="seconds between two of them, streamed or not")
    add("--first", type=numbers, metavar="S", help="seconds of silence before the head")
    add("--status", type=numbers, metavar="C", help="answer inference with this error")
    add("--hang", action="store_true", help="never answer inference")
    add("--usage", type=_facts, metavar="JSON", help="instead of what was counted; {} = none")
    add("--timings", type=_facts, metavar="JSON", help="instead of the usual ones; {} = none")
    add("--gzip", action="store_true", help="compress answers for who accepts it")
    add("--cors", metavar="VALUE", help="add Access-Control-Allow-Origin")


def _of_streams(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--big-line", type=numbers, metavar="B", help="one more event, a line of so many bytes")
    add("--split", action="store_true", help="write each event in odd-sized pieces")
    add("--no-done", action="store_true", help="leave out `data: [DONE]`")
    add("--crlf", action="store_true", help="end lines with CR LF")
    add("--tight", action="store_true", help="no space after `data:`")
    add("--comments", type=numbers, metavar="N", help="so many comment lines first")
    add("--stamp", action="store_true", help="each event tells when it was sent, on the monotonic clock")
    add("--error-at", type=numbers, metavar="N", help="an error event instead of the nth token (from 0)")
    add("--drop-at", type=numbers, metavar="N", help="close the connection there")
    add("--reset-at", type=numbers, metavar="N", help="reset the connection there")
    add("--die-on", type=numbers, metavar="N", help="end the process there, as --code or --sig say")


def numbers(text: str) -> Numbers:
    """Read `3`, `25,1` or `2,-`: a value for each start, `-` for none."""
    return tuple(None if word == "-" else float(word) for word in text.split(","))


def _facts(text: str) -> dict[str, Any]:
    facts = json.loads(text)
    if not isinstance(facts, dict):
        raise argparse.ArgumentTypeError("expected a JSON object")
    return facts


_GROUPS = {
    "the process": _of_the_process,
    "health": _of_health,
    "who is let in": _of_doors,
    "answers": _of_answers,
    "streams": _of_streams,
}
