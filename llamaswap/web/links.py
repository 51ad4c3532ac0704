"""One small page that links to what can be looked at."""

from __future__ import annotations

LINKS_PAGE = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>llamaswap</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 40em; margin: 3em auto; padding: 0 1em; }
dt { margin-top: 1em; font-weight: 600; }
dd { margin: 0; color: #555; }
@media (prefers-color-scheme: dark) {
  body { background: #111; color: #eee; }
  dd { color: #aaa; }
  a { color: #8bf; }
}
</style>
<h1>llamaswap</h1>
<dl>
<dt><a href="../running">/running</a><dd>what is loaded now
<dt><a href="../v1/models">/v1/models</a><dd>every model, as OpenAI clients see it
<dt><a href="../api/metrics/activity">/api/metrics/activity</a>
<dd>the last requests, and why each went when it did
<dt><a href="../metrics">/metrics</a><dd>the queue and the models, for Prometheus
<dt><a href="../api/performance">/api/performance</a>, <a href="../api/hardware">/api/hardware</a>
<dd>the last hour of this machine, and what it is
<dt><a href="../api/profiles">/api/profiles</a><dd>which names are pinned to which models
<dt><a href="../api/events">/api/events</a><dd>all of it as it happens
<dt><a href="../logs">/logs</a>, <a href="../logs/stream">/logs/stream</a><dd>what the daemon says
<dt><a href="../logs/stream/upstream">/logs/stream/upstream</a><dd>what the models say
</dl>
</html>
"""


def page_at(rest: bytes) -> bytes | None:
    """Return the page for a path below `/ui/`, or None where that names a file: there are none.

    Its links are relative, so that they lead to us behind a prefix, too.
    """
    name = rest.rpartition(b"/")[2]
    if b"." in name and name != b"index.html":
        return None
    return LINKS_PAGE.replace(b'"../', b'"' + b"../" * (1 + rest.count(b"/")))
