"""A daemon's configuration whose models are `real_odd_upstream.py`, and what such a request says."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from bench.launching import free_ports

ODD = Path(__file__).with_name("real_odd_upstream.py")


def odd_config(*models: str, **more: Any) -> dict[str, Any]:
    """A configuration of models that answer oddly; `more` goes to each."""
    command = shlex.join([sys.executable, "-I", "-S", str(ODD)]) + " --port ${PORT} --alias ${MODEL_ID}"
    server = {"cmd": command, "proxy": "http://127.0.0.1:${PORT}", **more}
    return {
        "startPort": free_ports(len(models)),
        "healthCheckTimeout": 30,
        "models": dict.fromkeys(models, server),
        "routing": {"scheduler": {"use": "serial"}},
    }


def odd_fields(path: Path, sizes: list[int], **more: Any) -> dict[str, str]:
    """The header fields of a request that wants this file, in writes of these sizes."""
    return {
        "Content-Type": "application/json",
        "X-Odd": json.dumps({"file": str(path), "sizes": sizes, **more}),
    }
