"""Write the answers of the commands in `docs/tuning.md` below them, and draw its pictures anew.

To be run after the scheduler or the shipped trace has changed; then the sentences between want reading.
"""

from __future__ import annotations

import os
import re
import shlex
from io import StringIO
from pathlib import Path

from llamaswap.tools.commands import run

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tuning.md"

SHOWN = re.compile(
    r"^```sh\n(llama-swap (?:simulate|tune) [^`]*?)^```\n\n```text\n(.*?)^```$", re.DOTALL | re.MULTILINE
)
"""A command and its answer."""


def words_of(command: str) -> list[str]:
    """Return the words of a command as it stands in a document, its name left out."""
    return shlex.split(command.replace("\\\n", " "))[1:]


def answer(command: str) -> str:
    """Return what a command writes.

    Raises:
        RuntimeError: it fails.
    """
    out, err = StringIO(), StringIO()
    if run(words_of(command), out, err, {}):
        raise RuntimeError(f"{command}: {err.getvalue()}")
    return out.getvalue().strip("\n")


def rewritten(page: str) -> str:
    """Return a page with every answer as it is now; paths are those of the working directory."""
    return SHOWN.sub(lambda found: f"```sh\n{found[1]}```\n\n```text\n{answer(found[1])}\n```", page)


if __name__ == "__main__":
    os.chdir(ROOT)
    PAGE.write_text(rewritten(PAGE.read_text("utf-8")), "utf-8")
