"""nginx in front of a daemon, with its default buffering and, unless told otherwise, timeouts."""

from __future__ import annotations

import grp
import os
import pwd
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.launching import free_ports
from support.real_daemon_talk import ask, until

NGINX = Path("/usr/sbin/nginx")

CONFIG = """\
daemon off;
user {user} {group};
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_max_body_size 0;
    proxy_read_timeout {read_timeout}s;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location = /nginx {{ return 204; }}
        location / {{ proxy_pass http://127.0.0.1:{upstream}; }}
        location /llm/ {{ proxy_pass http://127.0.0.1:{upstream}/; }}
    }}
}}
"""


@contextmanager
def nginx_before(upstream: int, folder: Path, *, read_timeout: int = 60) -> Iterator[int]:
    """Run nginx in front of a port; yields the port that it listens on.

    Args:
        read_timeout: seconds of an upstream's silence that it puts up with.
    """
    assert NGINX.exists(), f"there is no {NGINX}; install the package nginx-light"
    port = free_ports(1)
    config = folder / "nginx.conf"
    config.write_text(
        CONFIG.format(
            user=_own_name(),
            group=grp.getgrgid(os.getgid()).gr_name,
            folder=folder,
            port=port,
            read_timeout=read_timeout,
            upstream=upstream,
        )
    )
    with (folder / "nginx.log").open("wb") as log:
        process = subprocess.Popen(
            [NGINX, "-c", config, "-p", folder, "-e", folder / "error.log"], stdout=log, stderr=log
        )
    try:
        until(lambda: process.poll() is not None or _answers(port), "nginx to answer")
        assert process.poll() is None, (folder / "error.log").read_text()
        yield port
    finally:
        process.terminate()
        process.wait(10)


def _own_name() -> str:
    """Who its worker runs as: the test's own folders are closed to others."""
    return pwd.getpwuid(os.getuid()).pw_name


def _answers(port: int) -> bool:
    try:
        return ask(port, "GET", "/nginx").status == 204
    except OSError:
        return False
