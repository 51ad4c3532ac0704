"""Host names as an operator writes them, and as the resolver of his machine knows them.

Twisted's endpoint takes a name only if it may stand in the public DNS.  Names of containers and
of machines nearby need not: `llama_server` is what a compose file makes of a service.
"""

from __future__ import annotations

import re

from twisted.internet.endpoints import HostnameEndpoint
from typing_extensions import override

# What the resolver can be asked for, whatever IDNA says of it.
_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,63}(?:\.[A-Za-z0-9_-]{1,63})*\.?")


class NamedEndpoint(HostnameEndpoint):
    """The way to a host by its name, of either family; takes what `HostnameEndpoint` takes."""

    @override
    @staticmethod
    def _hostAsBytesAndText(host: bytes | str) -> tuple[bool, bytes, str]:
        # Twisted's own and private, but the only place where a name is looked at.
        invalid, as_bytes, as_text = HostnameEndpoint._hostAsBytesAndText(host)  # noqa: SLF001 - see above
        return invalid and _PLAIN.fullmatch(as_text) is None, as_bytes, as_text
