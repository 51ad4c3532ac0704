"""Which paths are not in their plain form, and where they should have gone.  Pure.

Knows Go's rules for a request's path, which clients of llama-swap rely on;
not what answers a path (`llamaswap.web.routes`).  Everything here works on
the path as it was sent, so that no escape is lost or made twice.
"""

from __future__ import annotations

import html
import re
from urllib.parse import unquote_to_bytes

from llamaswap.calls.call import LOOKS
from llamaswap.errors import BadRequest, Header
from llamaswap.web.routes import Match, find_route

MOVED = 307  # keeps the method and the body
HTML: Header = (b"Content-Type", b"text/html; charset=utf-8")

# What an upstream may take for a way up, whichever way it decodes and cleans a path.
_WAY_UP = re.compile(rb"(?:^|[/\\])\.\.(?:$|[/\\;])")
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")
# The backslash is here because browsers take it for a slash: "/\host" would leave the site.
_UNSAFE_IN_PATH = re.compile(rb'[^!-~]|["#<>\\^`{|}]')
_UNSAFE_IN_QUERY = re.compile(rb'[^!-~]|["#<>]')

_WORDS = {301: "Moved Permanently", 302: "Found", 307: "Temporary Redirect", 308: "Permanent Redirect"}


def check_path(path: bytes) -> None:
    """Refuse a path that cannot be decoded.

    Args:
        path: as received, without the query.

    Raises:
        BadRequest: it holds a `%` without two hex digits, or does not begin with a slash.
    """
    if path[:1] != b"/":
        raise BadRequest("the request path must begin with a slash")
    if b"%" in path and _BAD_ESCAPE.search(path) is not None:
        raise BadRequest("the request path holds a bad escape")


def check_stays(path: bytes) -> None:
    """Refuse a path that an upstream could read as one above the place that it is put behind.

    Plain dots never come this far (`clean`); escaped ones are part of a name
    for us, and a way up for who decodes first.

    Args:
        path: as it will be passed on, escaped, without the query.

    Raises:
        BadRequest: it has a `..` segment once it is decoded, or a NUL, at which a server in C would cut it.
    """
    plain = unquote_to_bytes(path)
    if b"\0" in plain or _WAY_UP.search(plain) is not None:
        raise BadRequest("the request path leads out of the model's place")


def clean(path: bytes) -> bytes | None:
    """Return the path without empty, `.` and `..` segments, or None when it is clean already.

    A slash at the end stays.  Escaped dots and slashes are left alone: they
    are part of a name.
    """
    if b"//" not in path and b"/." not in path:
        return None
    kept: list[bytes] = []
    for segment in path.split(b"/"):
        if segment == b"..":
            del kept[-1:]
        elif segment not in (b"", b"."):
            kept.append(segment)
    plain = b"/" + b"/".join(kept)
    if kept and path.endswith(b"/"):
        plain += b"/"
    return None if plain == path else plain


def moved(method: bytes, path: bytes, query: bytes | None) -> bytes | None:
    """Return the Location that a request must be sent to with 307, or None to answer it here.

    A path that is not clean goes to the clean one, and the name of a subtree
    (`/ui`) to its root (`/ui/`), where the method is served there and nothing
    else has that name.

    Args:
        path: as received; `check_path` has passed it.
    """
    plain = clean(path)
    wanted = path if plain is None else plain
    if _names_subtree(method, wanted):
        wanted += b"/"
    return None if wanted is path else location(wanted, query)


def location(path: bytes, query: bytes | None) -> bytes:
    """Return the value of a Location field for an escaped path; its escapes are kept as they are."""
    place = _UNSAFE_IN_PATH.sub(_escaped, path)
    return place + b"?" + _UNSAFE_IN_QUERY.sub(_escaped, query) if query else place


def moved_for_good(method: bytes) -> int:
    """Return the status of a permanent redirect: 301 where the method stays by itself, else 308."""
    return 301 if method in LOOKS else 308


def redirect_page(method: bytes, status: int, place: bytes) -> tuple[tuple[Header, ...], bytes]:
    """Return the fields and the body of a redirect: a small page for GET, for other methods nothing.

    Args:
        place: the Location; ASCII, as `location` makes it.
    """
    fields: tuple[Header, ...] = ((b"Location", place),)
    if method not in LOOKS:
        return fields, b""
    link = html.escape(place.decode("latin-1"))
    return (*fields, HTML), f'<a href="{link}">{_WORDS[status]}</a>.\n'.encode("latin-1")


def _names_subtree(method: bytes, path: bytes) -> bool:
    if path.endswith(b"/") or isinstance(find_route(method, path), Match):
        return False
    below = find_route(method, path + b"/")
    return isinstance(below, Match) and not below.rest


def _escaped(match: re.Match[bytes]) -> bytes:
    return b"%%%02X" % ord(match[0])
