"""Find models and peers whose `proxy` leads back to this daemon.

Such a model looks well, since we answer its health check, and each of its
requests would come back to us for ever.  Pure, and knows only what addresses
say: other names of this machine are not looked up, and a way that leads back
through somebody else's proxy cannot be seen from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import ip_address

from twisted.internet.address import IPv4Address, IPv6Address

from llamaswap.config.model import Config
from llamaswap.config.urls import without_user
from llamaswap.processes.health import LOOPBACKS, Address, parse_proxy

_EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - where we may have been told to listen


def leads_here(address: Address, places: Iterable[object]) -> bool:
    """Return whether this daemon itself listens at an address.

    Args:
        places: where it listens, as Twisted's ports tell.
    """
    hosts = LOOPBACKS if address.host.lower() == "localhost" else (address.host.lower(),)
    return any(
        place.port == address.port and any(_is_heard(host, place.host) for host in hosts)
        for place in places
        if isinstance(place, IPv4Address | IPv6Address)
    )


def loops_of(config: Config, places: Iterable[object]) -> Iterator[tuple[str, str]]:
    """Yield the path and the URL of each `proxy` in a configuration that leads back to us."""
    places = tuple(places)
    proxies = [(f"models.{model.id}.proxy", model.proxy) for model in config.models.values()]
    proxies += [(f"peers.{peer.id}.proxy", peer.proxy) for peer in config.peers.values()]
    for path, proxy in proxies:
        try:
            address = parse_proxy(proxy)
        except ValueError:  # told elsewhere
            continue
        if leads_here(address, places):
            yield path, without_user(proxy)


def _is_heard(host: str, place: str) -> bool:
    return host == place or (place in _EVERYWHERE and _is_this_machine(host))


def _is_this_machine(host: str) -> bool:
    try:
        literal = ip_address(host)
    except ValueError:
        return False
    return literal.is_loopback or literal.is_unspecified
