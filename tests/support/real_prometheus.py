"""A real Prometheus that reads a daemon's metrics, configured as `etc/prometheus.yaml` says, but quicker."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import yaml

from bench.launching import free_ports
from support.documents import ROOT
from support.real_daemon_talk import ask, until

ETC = ROOT / "etc"
UNPACKED = Path(sys.prefix) / "prometheus/usr/bin"  # by the Makefile, where it is not installed

Series = tuple[str, tuple[tuple[str, str], ...]]
"""A metric's name, and its labels, sorted."""


def program(name: str) -> str:
    """Return where one of Prometheus' programs is."""
    found = shutil.which(name) or shutil.which(name, path=str(UNPACKED))
    assert found, f"there is no {name}: see what the Makefile does for .prometheus"
    return found


def promtool(*words: str, told: str = "") -> tuple[int, str]:
    """Run promtool; returns its exit code and what it printed.

    Args:
        told: for its standard input.
    """
    ended = subprocess.run(
        [program("promtool"), *words], input=told, capture_output=True, text=True, timeout=60, check=False
    )
    return ended.returncode, ended.stdout + ended.stderr


class Prometheus:
    """One that runs.

    Args:
        port: where it listens.
        log: what it writes.
    """

    def __init__(self, port: int, log: Path) -> None:
        self._port = port
        self._log = log

    def api(self, path: str, **parameters: str) -> Any:
        """Ask its API; returns the data of an answer that has to be a success."""
        answer = ask(self._port, "GET", f"/api/v1/{path}?{urlencode(parameters)}").json
        assert answer["status"] == "success", f"{parameters}: {answer}"
        return answer["data"]

    def query(self, expression: str) -> dict[Series, float]:
        """Return the value of each series of an expression now, without the labels of the target."""
        return {
            _series(found["metric"]): float(found["value"][1])
            for found in self.api("query", query=expression)["result"]
        }

    def scrapes(self) -> int:
        """How often it has read the daemon's metrics."""
        return int(sum(self.query('count_over_time(up{job="llamaswap"}[10m])').values()))

    def wait_scrapes(self, more: int) -> None:
        """Wait until it has read them so often again."""
        wanted = self.scrapes() + more
        until(lambda: self.scrapes() >= wanted, f"{more} more scrapes")

    def is_ready(self) -> bool:
        """Whether it answers questions by now."""
        try:
            return ask(self._port, "GET", "/-/ready").status == 200
        except OSError:
            return False

    def log(self) -> str:
        """What it has complained of."""
        return self._log.read_text()


def _series(labels: dict[str, str]) -> Series:
    kept = {name: value for name, value in labels.items() if name not in ("__name__", "instance", "job")}
    return labels.get("__name__", ""), tuple(sorted(kept.items()))


@contextmanager
def prometheus_of(daemon_port: int, folder: Path) -> Iterator[Prometheus]:
    """Run Prometheus; it reads the metrics of the daemon on that port each second, and knows our rules."""
    port = free_ports(1)
    config = folder / "prometheus.json"
    config.write_text(json.dumps(_configuration(daemon_port)))
    words = [
        program("prometheus"),
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    prometheus = Prometheus(port, folder / "prometheus.log")
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log, cwd=folder)
    try:
        until(lambda: process.poll() is not None or prometheus.is_ready(), "Prometheus to answer")
        assert process.poll() is None, prometheus.log()
        yield prometheus
    finally:
        process.terminate()
        process.wait(20)


def _configuration(daemon_port: int) -> Any:
    """What is shipped, for this daemon; JSON is YAML."""
    config = yaml.safe_load((ETC / "prometheus.yaml").read_text())
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["rule_files"] = [str(ETC / name) for name in config["rule_files"]]
    config["scrape_configs"][0]["static_configs"] = [{"targets": [f"127.0.0.1:{daemon_port}"]}]
    return config
