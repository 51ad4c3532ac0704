"""What a chat client is told while its model loads: the words, and the events that carry them.  Pure.

Everything comes as reasoning text, which clients show apart from the answer.
When a word is said is `llamaswap.web.loading`'s part.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random

from llamaswap.errors import Refusal
from llamaswap.rendering import envelope

PIECE_CHARACTERS = 5
RULE = "━━━━━"  # clients tell the loading text from the model's own by these two lines

REMARKS = (
    "Blowing the dust off the weights...",
    "The GPU is clearing its desk...",
    "Teaching electrons to stand in line...",
    "Unrolling a few billion numbers...",
    "Please hold the line, the tensors are on their way...",
    "Counting layers. Lost count. Starting over...",
    "Good answers come to those who wait...",
    "Moving in: the furniture is mostly matrices...",
    "Warming up the attention heads...",
    "The fans say hello...",
    "Asking the disk nicely to hurry...",
    "Stretching before the marathon...",
    "Looking for the on switch...",
    "Almost there, for some value of almost...",
    "Untangling the context window...",
    "Time for a sip of coffee...",
)

# As in JSON meant for pages; the last three end a line for readers that split on Unicode's line ends.
_ESCAPES = {char: f"\\u{ord(char):04x}" for char in "<>&\x85\u2028\u2029"}
_ESCAPED = str.maketrans(_ESCAPES)


def opening(model: str) -> str:
    """Return the first words."""
    return f"{RULE}\nllama-swap loading model: {model}\n"


def queue_notice(position: int) -> str:
    """Return what is said of a place in the queue; 1 goes next."""
    return f"\nQueue position: #{position} "


def remark_line(remark: str) -> str:
    """Return a remark on a line of its own."""
    return f"\n{remark} "


def closing(seconds: float) -> str:
    """Return the last words, after this much time."""
    return f"\nDone! ({seconds:.2f}s)\n{RULE}\n \n"


def pieces(text: str) -> Sequence[str]:
    """Cut a text into what is typed at a time; a line break stands alone."""
    cut: list[str] = []
    for line in text.splitlines(keepends=True):
        words = line.removesuffix("\n")
        cut += [words[at : at + PIECE_CHARACTERS] for at in range(0, len(words), PIECE_CHARACTERS)]
        if words != line:
            cut.append("\n")
    return cut


def event(piece: str) -> bytes:
    """Return one whole event that says `piece`."""
    said = json.dumps(piece, ensure_ascii=False).translate(_ESCAPED)
    return b'data: {"choices":[{"delta":{"reasoning_content":%b}}]}\n\n' % said.encode("utf-8", "replace")


def error_event(refusal: Refusal) -> bytes:
    """Return one event with the error envelope, so that a client finds it where it looks."""
    return b"data: " + envelope(refusal) + b"\n\n"


def named_error_event(refusal: Refusal) -> bytes:
    """`error_event` as Anthropic's API has it: clients look at the event's name, and some at `type`."""
    return b'event: error\ndata: {"type":"error",' + envelope(refusal)[1:] + b"\n\n"


class Remarks:
    """All remarks in a random order, over and over.

    Args:
        dice: shuffles them.
    """

    def __init__(self, dice: Random) -> None:
        self._dice = dice
        self._left: list[str] = []

    def next(self) -> str:
        """Return another one."""
        if not self._left:
            self._left = list(REMARKS)
            self._dice.shuffle(self._left)
        return self._left.pop()
