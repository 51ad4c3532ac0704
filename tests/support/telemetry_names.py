"""The names of all metrics that a daemon can have."""

from __future__ import annotations

import re

from llamaswap.telemetry.resources import Resources
from llamaswap.telemetry.sampler import Sample
from support.telemetry_scrape import Scrape
from support.telemetry_sources import GPU, HOST


def exported_metrics() -> set[str]:
    """Return the names of all families, with everything to show that a machine can have."""
    metrics = Scrape().metrics
    metrics.watch(Resources(lambda: Sample(at_us=0, host=HOST, gpus=(GPU,))))
    return set(re.findall(r"^# TYPE (\S+) ", metrics.render().decode(), re.MULTILINE))
