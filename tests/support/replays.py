"""Commands that replay, as a person gives them."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from llamaswap.tools.commands import run

REQUESTS = """\
arrival_s,model,priority,run_s
0,painter,batch,60
1,painter,batch,60
2,painter,batch,60
10,chat,interactive,5
30,coder,normal,8
70,c,interactive,5
"""
LOADS = "{models: {chat: {load: 8}, coder: {load: 14}, painter: {load: 20}}, model: {values: {c: chat}}}"
CONFIG = """
models:
  chat: {cmd: s, proxy: "http://h:1", aliases: [c]}
  coder: {cmd: s, proxy: "http://h:2"}
  painter: {cmd: s, proxy: "http://h:3"}
  spare: {cmd: s, proxy: "http://h:4"}
routing: {scheduler: {use: serial, settings: {serial: {agingDivisor: 30}}}}
"""


@dataclass(frozen=True, slots=True)
class Told:
    """What a command wrote, and its exit code."""

    code: int
    out: str
    err: str


def told(*words: str | Path) -> Told:
    """Give a command."""
    out, err = StringIO(), StringIO()
    code = run([str(word) for word in words], out, err, {})
    return Told(code, out.getvalue(), err.getvalue())


def replayed(command: str, folder: Path, *words: str | Path) -> Told:
    """Give a command about six requests for three models."""
    trace = folder / "few.csv"
    trace.write_text(REQUESTS)
    return told(command, "--trace", trace, "--mapping", LOADS, *words)
