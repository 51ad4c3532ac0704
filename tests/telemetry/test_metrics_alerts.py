"""The alerts that are shipped: what they read, what they say, and that each is tried out.

That Prometheus understands them, and that they fire when they should, is seen in
`tests/integration/test_prometheus.py`.
"""

from __future__ import annotations

from typing import Any

import yaml

from support.documents import read
from support.telemetry_dashboard import metrics_in
from support.telemetry_names import exported_metrics


def loaded(name: str) -> Any:
    """One of the files, read."""
    return yaml.safe_load(read(name))


GROUPS = loaded("etc/prometheus-alerts.yaml")["groups"]
RULES = [rule for group in GROUPS for rule in group["rules"]]
ALERTS = {rule["alert"]: rule for rule in RULES if "alert" in rule}
CASES = loaded("tests/integration/prometheus-alerts-test.yaml")["tests"]


def test_they_read_only_what_the_daemon_exports_or_the_rules_record() -> None:
    recorded = {rule["record"] for rule in RULES if "record" in rule}

    for rule in RULES:
        expression = rule["expr"]
        for name in recorded:
            expression = expression.replace(name, "")
        assert metrics_in(expression) <= exported_metrics(), rule
        assert "instance:" not in expression, "it reads something that nothing records"


def test_what_is_recorded_is_used() -> None:
    expressions = " ".join(rule["expr"] for rule in ALERTS.values())

    unused = [rule["record"] for rule in RULES if "record" in rule and rule["record"] not in expressions]

    assert unused == []


def test_each_says_how_bad_it_is_what_is_wrong_and_what_to_do() -> None:
    for name, rule in ALERTS.items():
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}, name
        assert set(rule["annotations"]) == {"summary", "description"}, name
        assert rule["annotations"]["description"].endswith("."), name


def test_each_fires_in_one_of_the_cases_and_in_another_one_or_before_it_does_not() -> None:
    tried: dict[str, set[bool]] = {name: set() for name in ALERTS}
    for case in CASES:
        for trial in case.get("alert_rule_test", ()):
            tried[trial["alertname"]].add(bool(trial.get("exp_alerts")))

    assert {name: outcomes for name, outcomes in tried.items() if outcomes != {True, False}} == {}


def test_each_is_explained_in_the_document() -> None:
    text = read("docs/metrics.md")

    assert [name for name in ALERTS if f"`{name}`" not in text] == []
