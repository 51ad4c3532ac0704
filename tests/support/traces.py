"""Traces and activity stores that tests write, small and by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from llamaswap.activity.record import Activity
from llamaswap.activity.store import ActivityStore
from llamaswap.metering.usage import Usage
from support.activity_rows import add_all

AZURE_2023 = """\
TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4808,10
2023-11-16 18:17:04.0319600,3180,8
"""
AZURE_2024 = """\
TIMESTAMP,ContextTokens,GeneratedTokens
2024-05-10 00:00:00.009930+00:00,2162,5
2024-05-10 00:00:01.509930+00:00,2399,6
"""
BURSTGPT_1 = """\
Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45,GPT-4,1087,230,1317,API log
"""
BURSTGPT_3 = """\
Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
19440110.0,1722ac82,43,GPT-4,906,446,1352,Conversation log
19440161.0,,2,ChatGPT,36,29,65,API log
"""
MOONCAKE = """\
{"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2]}
{"timestamp": 3052, "input_length": 2290, "output_length": 316, "hash_ids": [0, 42]}
"""
ARRIVALS = """\
arrival_s,model,priority,run_s,user,cancel_after_s
0.5,chat,interactive,4.2,ada,
2,painter,-99,60,bob,30
"""


def written(folder: Path, name: str, text: str) -> Path:
    """Write a file and return where."""
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def row(
    ended: float,
    model: str,
    lasted: float,
    *,
    status: int = 200,
    usage: Usage | None = None,
    **metadata: object,
) -> Activity:
    """One row of an activity store; times in seconds."""
    told: Mapping[str, str] = {key: str(value) for key, value in metadata.items()}
    return Activity(
        ended=ended,
        model=model,
        req_path="/v1/chat/completions",
        resp_status_code=status,
        duration_ms=round(lasted * 1000),
        usage=usage if usage is not None else Usage(),
        metadata=told,
    )


def dispatched(
    ended: float, model: str, lasted: float, waited: float, load: float, priority: int = 0
) -> Activity:
    """A row of a request that the serial scheduler served; times in seconds."""
    return row(
        ended,
        model,
        lasted,
        serial_priority=priority,
        serial_score="1",
        serial_queue_wait_ms=round(waited * 1000),
        serial_load_ms=round(load * 1000),
    )


def store(path: Path, rows: Iterable[Activity]) -> Path:
    """Write an activity store as the daemon does."""
    activity = ActivityStore(str(path), 0)
    add_all(activity, list(rows))
    activity.close()
    return path
