"""The dashboard that is shipped, and what it asks Prometheus."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from support.documents import read

DASHBOARD: Final = "etc/grafana-dashboard.json"

# What Grafana puts in for its variables.
VARIABLES: Final = {"$__rate_interval": "1m", "$__range": "10m", "$instance": ".*", "$model": ".*"}


def dashboard() -> Any:
    """Return the whole of it."""
    return json.loads(read(DASHBOARD))


def panels() -> list[dict[str, Any]]:
    """Return the panels that show something, in their order."""
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def queries() -> Iterator[tuple[str, str]]:
    """Yield each query as Prometheus gets it, with the title of its panel."""
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], filled_in(target["expr"])


def filled_in(expression: str) -> str:
    """Put in what Grafana would."""
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    return expression


def metrics_in(expression: str) -> set[str]:
    """Return the families that an expression reads; the series of a histogram are one."""
    names = re.findall(r"(?<![\w:])llamaswap_\w+", expression)
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}
