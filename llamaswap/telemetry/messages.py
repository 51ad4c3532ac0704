"""The messages of the event stream, as the bytes that go over the wire.  Pure.

Each is one `message` event whose data is JSON: a type, and the facts as JSON within a string.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from llamaswap.scheduling.vocabulary import Band, BandView, QueueView

MODEL_STATUS: Final = "modelStatus"
LOG_DATA: Final = "logData"
ACTIVITY: Final = "activity"
IN_FLIGHT: Final = "inflight"
UI_CONFIG: Final = "uiConfig"
PROFILE_CHANGED: Final = "profileChanged"
QUEUE_STATUS: Final = "queueStatus"  # ours; clients of llama-swap pass over it


def message(kind: str, facts: Any) -> bytes:
    """Return one event, its blank line included; what is no text becomes a question mark."""
    body = _json({"type": kind, "data": _json(facts)})
    return b"event:message\ndata:%b\n\n" % body.encode("utf-8", "replace")


def log_message(source: str, text: str) -> bytes:
    """Return a piece of a log; `source` is proxy or upstream."""
    return message(LOG_DATA, {"source": source, "data": text})


def queue_status(view: QueueView) -> Mapping[str, Any]:
    """Return who waits and what runs: depth and longest wait of each band, models of the running jobs.

    `paused` are the bands that somebody holds up, always in the same order.
    """
    return {
        "bands": bands_facts(view.bands),
        "running": list(dict.fromkeys(job.model for job in view.jobs)),
        "paused": [band.value for band in Band if band in view.paused],
    }


def bands_facts(bands: Mapping[Band, BandView]) -> Mapping[str, Any]:
    """Return depth and longest wait of each band, as everything that we show has them."""
    return {
        band.value: {"depth": waiting.depth, "oldest_wait_ms": int(waiting.oldest_wait * 1000)}
        for band, waiting in bands.items()
    }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
