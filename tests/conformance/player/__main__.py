"""The command line of the player; `http.md` describes it."""

from __future__ import annotations

import argparse
import random
import signal
import sys
from pathlib import Path

from conformance.player.corpus import RECORDED, Case, chosen, read_corpus, strictly
from conformance.player.crew import Result, play_all


def main(words: list[str] | None = None) -> int:
    """Play or list cases; returns 1 when one failed."""
    options = _options().parse_args(words)
    cases = chosen(read_corpus(options.corpus), options.only)
    if options.list:
        sys.stdout.writelines(map(_listed, cases))
        return 0
    if options.strict:
        cases = strictly(cases)
    if options.shuffle:
        random.shuffle(cases)
    # Told to end, we end the servers first.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    failed = 0
    for result in play_all(options.server, cases, jobs=options.jobs, limit=options.timeout):
        failed += bool(result.wrong)
        if result.wrong or options.verbose:
            sys.stdout.write(_told(result))
            sys.stdout.flush()
    sys.stdout.write(f"{len(cases) - failed} passed, {failed} failed\n")
    return 1 if failed else 0


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="play.py", description="Play HTTP transcripts against a server.")
    add = parser.add_argument
    add("--server", default="llama-swap -config {CONFIG} -listen {LISTEN}", help="what starts a server")
    add("--corpus", type=Path, default=RECORDED, help="file with cases")
    add("--only", action="append", default=[], help="a part of an id, or section:N; repeatable")
    add("--list", action="store_true", help="list the cases and leave")
    add("--jobs", type=int, default=3, help="servers at once")
    add("--timeout", type=float, default=20, help="seconds for a case that has no limit of its own")
    add("--strict", action="store_true", help="accept only what was recorded")
    add("--shuffle", action="store_true", help="in random order")
    add("-v", "--verbose", action="store_true", help="tell also what passes")
    return parser


def _listed(case: Case) -> str:
    marks = "".join(f"\t{mark}" for mark in ("quirk", "ours") if case.get(mark))
    return f"{case['id']}\tsection {case['section']}\t{len(case['steps'])} steps{marks}\n"


def _told(result: Result) -> str:
    if result.wrong:
        return f"FAIL {result.case}: {' | '.join(result.wrong)}\n"
    return f"ok   {result.case} {result.took:.2f} s\n"


if __name__ == "__main__":
    sys.exit(main())
