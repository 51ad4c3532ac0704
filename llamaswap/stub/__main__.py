"""Run a stub: read the command line, start as it says, serve."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from llamaswap.stub.chatter import chatter
from llamaswap.stub.life import Mortality, go_below_a_shell
from llamaswap.stub.options import options_of
from llamaswap.stub.records import Record, count_start, note_words
from llamaswap.stub.server import Server
from llamaswap.stub.switches import make_parser


def main(words: Sequence[str]) -> None:
    """Serve until killed; SystemExit with 2 if the words make no sense."""
    began = time.monotonic()
    given = make_parser().parse_args(words)
    if given.fork:
        go_below_a_shell()
    note_words(given.argv, words)
    options = options_of(given, count_start(given.counter))
    record = Record(options.record, options.alias)
    record.note("started", start=options.start)
    mortality = Mortality(options.life, record, began)
    mortality.begin()
    time.sleep(max(0.0, began + options.life.bind_at - time.monotonic()))
    server = Server(options, record, mortality, began)
    with server.listen() as door:
        host, port = door.getsockname()[:2]
        sys.stdout.write(f"stub: {options.alias} listens on {host} port {port}, start {options.start}\n")
        sys.stdout.flush()
        if options.log_rate:
            chatter(options.log_rate)
        server.serve(door)


if __name__ == "__main__":
    main(sys.argv[1:])
