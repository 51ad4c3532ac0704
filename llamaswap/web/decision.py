"""The fields that tell a client when and why its request was served."""

from __future__ import annotations

from typing import Final

from llamaswap.http1.exchange import Exchange
from llamaswap.scheduling.vocabulary import Verdict

NAMES: Final = frozenset(
    {b"x-llamaswap-queue-ms", b"x-llamaswap-load-ms", b"x-llamaswap-score", b"x-llamaswap-band"}
)

_LINES: Final = (
    "X-LlamaSwap-Queue-Ms: %d\r\nX-LlamaSwap-Load-Ms: %d\r\nX-LlamaSwap-Score: %s\r\nX-LlamaSwap-Band: %s\r\n"
)


def tell(exchange: Exchange, verdict: Verdict, load: float) -> None:
    """Have the response say what was decided, if it has not begun and a score decided.

    Args:
        load: seconds that the job has loaded its model.
    """
    if verdict.thousandths is None:
        return
    lines = _LINES % (verdict.waited_us // 1000, load * 1000, verdict.score, verdict.band)
    exchange.own_lines = lines.encode()
    exchange.own_names = NAMES
