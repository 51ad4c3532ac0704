"""Whether a text can be a URL at all, by the rules of Go's `url.Parse`.

Knows syntax only: a text without a scheme passes, and so does a port above 65535.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import urlsplit

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_ASCII_ESCAPE = re.compile(r"%(?!25)[0-7]")
_USER = re.compile(r"[A-Za-z0-9._:~!$&'()*+,;=%@-]*")
_HOST = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:\[\]<>\"%-]|[^\x00-\x7f])*")
_USER_PART = re.compile(r"(?<=//)[^/?#]*@")
_PORT = re.compile(r"(?::[0-9]*)?")


def url_trouble(text: str) -> str | None:
    """What is wrong with a URL; None when it parses.  '' parses."""
    if _CONTROL.search(text):
        return "has a control character"
    rest, _, fragment = text.partition("#")
    if rest.startswith(":"):
        return "lacks its scheme"
    scheme = _SCHEME.match(rest)
    rest = (rest[scheme.end() :] if scheme else rest).partition("?")[0]
    if not rest.startswith("/"):
        if not scheme and ":" in rest.partition("/")[0]:
            return "lacks its scheme, as in http://"
        return None if scheme else _escapes(rest + fragment)
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, path = rest[2:].partition("/")
        return _authority_trouble(authority) or _escapes(slash + path + fragment)
    return _escapes(rest + fragment)


def leads_nowhere(text: str) -> str | None:
    """Why nothing can be sent to a URL that parses; None when something can."""
    try:
        parts = urlsplit(text.strip())
        _ = parts.port
    except ValueError as error:
        return f"is not a URL: {error}"
    is_ours = parts.scheme in ("http", "https") and parts.hostname
    return None if is_ours else "is not an http:// or https:// URL"


def without_user(text: str) -> str:
    """A URL as people may see it: without a user's name and password, which are never sent to anybody."""
    return _USER_PART.sub("...@", text)


def _escapes(text: str) -> str | None:
    return "has a broken %-escape" if _BAD_ESCAPE.search(text) else None


def _authority_trouble(authority: str) -> str | None:
    user, _, host = authority.rpartition("@")
    if not _USER.fullmatch(user) or _BAD_ESCAPE.search(user):
        return "has a character in its user part that is not allowed there"
    if host.startswith("["):
        return _bracket_trouble(host)
    name, colon, port = host.rpartition(":")
    if not _PORT.fullmatch(colon + port if colon else "") or ":" in name:
        return "has a port that is no number"
    if not _HOST.fullmatch(host) or _BAD_ESCAPE.search(host) or _ASCII_ESCAPE.search(host):
        return "has a character in its host that is not allowed there"
    return None


def _bracket_trouble(host: str) -> str | None:
    address, bracket, port = host[1:].rpartition("]")
    if not bracket:
        return "lacks the ] of its address"
    if not _PORT.fullmatch(port):
        return "has a port that is no number"
    try:
        ipaddress.IPv6Address(address.replace("%25", "%", 1))
    except ValueError:
        return "has no IPv6 address between its brackets"
    return None
