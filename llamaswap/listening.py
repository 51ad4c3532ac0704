"""What people write after `--listen`, as Twisted endpoint descriptions, and the way back."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress

DEFAULT_ADDRESS = "127.0.0.1:8080"

ENDPOINT_KINDS = ("fd", "ssl", "systemd", "tcp", "tcp6", "tls", "unix")

OPENED_KINDS = ("ssl", "tcp", "tcp6", "unix")
"""Those whose sockets we open ourselves."""

BACKLOG = 4096
"""Connections that the kernel holds until we take them; with Twisted's 50, a burst waits seconds for it, and
is refused on a UNIX socket."""

_HOST_AND_PORT = re.compile(r"(?:\[(?P<bracketed>[^\]]*)\]|(?P<host>[^:\[\]]*)):(?P<port>[0-9]{1,5})")


class BadAddress(ValueError):
    """The text is no address to listen on."""


def endpoints_of(address: str, *, dual_stack: bool) -> Sequence[str]:
    """Return the endpoint descriptions of one address.

    Args:
        address: `host:port`, `:port` (every interface), or an endpoint description.
        dual_stack: whether one IPv6 socket can serve IPv4 too, for `:port`.

    Returns:
        One description; two for `localhost`, which means both loopbacks.

    Raises:
        BadAddress: it is neither.
    """
    kind, _, rest = address.partition(":")
    if kind in ENDPOINT_KINDS:
        return (
            f"{address}:backlog={BACKLOG}" if kind in OPENED_KINDS and ":backlog=" not in rest else address,
        )
    match = _HOST_AND_PORT.fullmatch(address.strip())
    if match is None or int(match["port"]) > 65535:
        kinds = ", ".join(ENDPOINT_KINDS)
        raise BadAddress(f"{address!r} is neither host:port nor an endpoint ({kinds})")
    host, port = match["bracketed"] or match["host"] or "", match["port"]
    if host == "localhost":
        return (_tcp("127.0.0.1", port), _tcp("::1", port)) if dual_stack else (_tcp("127.0.0.1", port),)
    return (_tcp(host or ("::" if dual_stack else "0.0.0.0"), port),)  # noqa: S104 - asked for with ":port"


def shown_place(address: object) -> str:
    """Return how people write the address that a port listens on."""
    if isinstance(address, IPv4Address):
        return f"{address.host}:{address.port}"
    if isinstance(address, IPv6Address):
        return f"[{address.host}]:{address.port}"
    if isinstance(address, UNIXAddress) and address.name is not None:
        return f"unix:{os.fsdecode(address.name)}"
    return str(address)


def _tcp(host: str, port: str) -> str:
    if ":" in host:
        escaped = host.replace(":", r"\:")
        return f"tcp6:{port}:interface={escaped}:backlog={BACKLOG}"
    return f"tcp:{port}:interface={host}:backlog={BACKLOG}"
