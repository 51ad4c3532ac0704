"""Starts the proxies that are compared, each set up for this job as well as its manual allows.

All keep connections to the upstream open, pass streams on at once, and write
an access log to a file, as the daemon does.  None of them listens anywhere
but on 127.0.0.1.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import filterfalse
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from bench.accounting import children, command_line, listeners
from bench.launching import Failed, end, free_port, launch, proxy_processors, wait_for_port

MODEL = "bench"
"""The only model there is; a peer has to know it, too."""

DIRECT, NGINX, HAPROXY, LLAMASWAP = "direct", "nginx", "haproxy", "llamaswap"

MODEL_PROCESS = "sleep"  # stands in for a model's server; what answers is our own upstream

NGINX_CONFIG = """\
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log;
{user}
events {{ worker_connections 8192; }}
http {{
  access_log {folder}/nginx-access.log combined;
  client_body_temp_path {folder}/nginx-body;
  proxy_temp_path {folder}/nginx-proxy;
  fastcgi_temp_path {folder}/nginx-unused;
  uwsgi_temp_path {folder}/nginx-unused;
  scgi_temp_path {folder}/nginx-unused;
  client_max_body_size 0;
  keepalive_timeout 600s;
  keepalive_requests 1000000000;
  proxy_read_timeout 600s;
  upstream model {{
    server 127.0.0.1:{upstream};
    keepalive 1024;
    keepalive_requests 1000000000;
    keepalive_timeout 600s;
  }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass http://model;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      {more}
    }}
  }}
}}
"""

HAPROXY_CONFIG = """\
global
  log stdout format raw local0
  maxconn 8192
  nbthread 1
defaults
  mode http
  log global
  option httplog
  option abortonclose
  option http-no-delay
  http-reuse always
  timeout connect 10s
  timeout client 600s
  timeout server 600s
  timeout queue 600s
frontend clients
  bind 127.0.0.1:{port} backlog 4096
  default_backend models
backend models
  server model 127.0.0.1:{upstream} {server}
"""


@dataclass(slots=True)
class Contestant:
    """A proxy that runs, or the upstream itself; stops what was started for it when left as a context."""

    name: str
    port: int
    process: subprocess.Popen[str] | None = None
    log: Path | None = None  # what it prints

    def pids(self) -> list[int]:
        """Return the processes that do its work, the main one first; [] without a proxy.

        The daemon's models are not among them.
        """
        if self.name == DIRECT:
            return []
        if self.process is None:
            return listeners(self.port)
        return [self.process.pid, *filterfalse(_is_model, children(self.process.pid))]

    def stop(self) -> None:
        """Stop what was started; a peer that was there before us runs on."""
        if self.process is not None:
            end(self.process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.stop()


def direct(upstream: int) -> Contestant:
    """Return the upstream itself, as a contestant without a proxy."""
    return Contestant(DIRECT, upstream)


def start_nginx(folder: Path, upstream: int, *, name: str = NGINX, more: str = "") -> Contestant:
    """Start nginx with one worker.

    Args:
        more: further lines for its `location`.
    """
    port = free_port()
    config = folder / f"{name}.conf"
    user = "user root;" if os.geteuid() == 0 else ""
    config.write_text(
        NGINX_CONFIG.format(folder=folder, upstream=upstream, port=port, user=user, more=more).replace(
            f"{folder}/nginx", f"{folder}/{name}"
        )
    )
    return _started(name, port, folder, [_program("nginx"), "-c", config, "-e", folder / f"{name}-error.log"])


def start_haproxy(folder: Path, upstream: int, *, name: str = HAPROXY, server: str = "") -> Contestant:
    """Start haproxy with one thread.

    Args:
        server: further words for its `server` line, such as `maxconn 1`.
    """
    port = free_port()
    config = folder / f"{name}.cfg"
    config.write_text(HAPROXY_CONFIG.format(upstream=upstream, port=port, server=server))
    return _started(name, port, folder, [_program("haproxy"), "-db", "-f", config])


def start_llamaswap(
    folder: Path, config: Mapping[str, Any] | str, extra_args: Sequence[str] = (), *, name: str = LLAMASWAP
) -> Contestant:
    """Start the daemon with its own command line, as `make run` does; its output goes to a file.

    Args:
        config: a configuration, or its text.
        extra_args: further words for the command line.
    """
    port = free_port()
    file = folder / f"{name}.yaml"
    file.write_text(config if isinstance(config, str) else json.dumps(config))  # JSON is YAML
    words: list[str | Path] = [
        Path(sys.executable).with_name("llama-swap"),
        "--config",
        file,
        "--listen",
        f"127.0.0.1:{port}",
    ]
    return _started(name, port, folder, [*words, *extra_args])


def llamaswap_config(
    folder: Path, upstream: int, *, scheduler: Literal["fifo", "serial"] = "fifo"
) -> dict[str, Any]:
    """Return a configuration with every feature on, whose model is answered by our own upstream."""
    return {
        "models": {
            MODEL: {
                "cmd": f"{MODEL_PROCESS} 100000",
                "proxy": f"http://127.0.0.1:{upstream}",
                "checkEndpoint": "none",
                "concurrencyLimit": 100_000,
            }
        },
        "routing": {"scheduler": {"use": scheduler}},
        "store": {"path": str(folder / "activity.db")},
    }


def peers() -> list[Contestant]:
    """Return the proxies that `BENCH_PEER=name=port[,name=port]` names; they run already.

    Raises:
        Failed: it is written otherwise.
    """
    found = []
    for word in filter(None, os.environ.get("BENCH_PEER", "").split(",")):
        name, _, port = word.partition("=")
        if not name or not port.isdigit():
            raise Failed(f"BENCH_PEER: expected name=port, got {word!r}")
        wait_for_port(int(port))
        found.append(Contestant(name, int(port)))
    return found


def _started(name: str, port: int, folder: Path, words: Sequence[str | Path]) -> Contestant:
    log = folder / f"{name}.log"
    process = launch(words, proxy_processors(), log=log, folder=folder)
    contestant = Contestant(name, port, process, log)
    try:
        wait_for_port(port, process, log)
    except Failed:
        contestant.stop()
        raise
    return contestant


def _is_model(pid: int) -> bool:
    return any(Path(word).name == MODEL_PROCESS for word in command_line(pid)[:1])


def _program(name: str) -> str:
    """Return where a program is; servers live where users' paths don't lead."""
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if path is None:
        raise Failed(f"{name} is not installed")
    return path
