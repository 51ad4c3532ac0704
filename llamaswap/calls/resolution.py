"""Which model a requested name means: pins first, then selectors, then the names themselves.

Pure, but for the selectors' counts and the profile that is on, which live with their owners.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import msgspec

from llamaswap.calls.catalog import Catalog, beginnings
from llamaswap.calls.profiles import ActiveProfile
from llamaswap.calls.selectors import Reservation, Selectors
from llamaswap.config.model import Config, ModelConfig, PeerConfig
from llamaswap.errors import ModelNotFound, NoModel

MOST_SHOWN = 256
"""Characters that are told of a name that nothing has, in log and row: a body has room for a book."""


class Local(msgspec.Struct, frozen=True):
    """A model of this daemon."""

    model: ModelConfig


class Remote(msgspec.Struct, frozen=True):
    """A model that a peer offers."""

    peer: PeerConfig
    model: str  # its name over there


Destination: TypeAlias = Local | Remote


class Resolved(msgspec.Struct, frozen=True):
    """What a requested name means now."""

    destination: Destination | None  # None: nothing is called `requested`
    requested: str  # the name once a pin and a selector have had their say; its beginning, if nothing has it
    selector: str = ""  # the selector's id, for the activity row
    reservation: Reservation = msgspec.field(default_factory=Reservation)  # the caller's, to be released


class Placed(msgspec.Struct, frozen=True):
    """What the beginning of a path means."""

    destination: Destination
    name: str  # as it stands in the path, decoded: what the upstream shall not see
    requested: str  # the name once a pin has had its say: what a redirect leads to


class PeerNames:
    """The names of the peers' models: `<peer>/<model>`, and the bare ones that one peer alone offers."""

    def __init__(self, peers: Mapping[str, PeerConfig]) -> None:
        offers = [Remote(peer, model) for peer in peers.values() for model in dict.fromkeys(peer.models)]
        self._qualified = {qualified_name(offer): offer for offer in offers}
        self._bare: dict[str, list[Remote]] = {}
        for offer in offers:
            self._bare.setdefault(offer.model, []).append(offer)

    def __iter__(self) -> Iterator[str]:
        """Every name, those that mean nothing because too many offer them included."""
        yield from self._qualified
        yield from self._bare

    def find(self, name: str) -> Remote | None:
        """Return the peer's model that a name means, or None; qualified names go before bare ones."""
        qualified = self._qualified.get(name)
        if qualified is not None:
            return qualified
        offers = self._bare.get(name, ())
        return offers[0] if len(offers) == 1 else None


class Directory:
    """Finds destinations: local ids, then aliases, then peers.  Exact and case-sensitive.

    Args:
        catalog: the local names.
        peers: by id.
        profile: asked for its pins at each request.
        selectors: asked for their targets at each request.
    """

    def __init__(
        self,
        catalog: Catalog,
        peers: Mapping[str, PeerConfig],
        profile: ActiveProfile,
        selectors: Selectors,
    ) -> None:
        self._catalog = catalog
        self._peers = PeerNames(peers)
        self._profile = profile
        self._selectors = selectors
        self._longest_name = max(map(len, self._names()), default=0)
        # What a name means by itself never changes; a place that nobody holds may be given back often.
        self._plain = {name: Resolved(self.destination(name), name) for name in self._names()}

    def destination(self, name: str) -> Destination | None:
        """Return what a name means by itself, without pins and selectors."""
        model = self._catalog.find(name)
        return Local(model) if model is not None else self._peers.find(name)

    def resolve(self, name: str) -> Resolved:
        """Return what a requested name means now; the caller releases the reservation.

        Raises:
            NoModel: a pin switches the name off.
            NoTarget: a selector has no target left.
        """
        pin = self._profile.pin(name)
        if pin is not None:
            name = pin.target
        if not name:
            raise NoModel
        if name not in self._selectors:
            return self._plain.get(name) or Resolved(None, shown(name))
        choice = self._selectors.choose(name)
        return Resolved(self.destination(choice.target), choice.target, name, choice.reservation)

    def resolve_path(self, path: str) -> Placed:
        """Return what the beginning of a path means; selectors do not count here.

        The longest pin that is on decides, else the longest leading run of
        segments that is a name.

        Args:
            path: decoded, without a leading slash; names may contain slashes.

        Raises:
            ModelNotFound: the path begins with no name, or with one that is switched off.
        """
        pin = self._profile.pin_in_path(path)
        found = self._longest(path) if pin is None else self._placed(pin.name, pin.target)
        if found is None:
            raise ModelNotFound
        return found

    def _longest(self, path: str) -> Placed | None:
        found = (self._placed(name, name) for name in beginnings(path, self._longest_name))
        return next((placed for placed in found if placed is not None), None)

    def _names(self) -> Iterator[str]:
        for model in self._catalog.models.values():
            yield model.id
            yield from model.aliases
        yield from self._peers

    def _placed(self, name: str, requested: str) -> Placed | None:
        destination = self.destination(requested) if requested else None
        return None if destination is None else Placed(destination, name, requested)


def make_directory(config: Config, profile: ActiveProfile, state: Callable[[str], str]) -> Directory:
    """Build the directory of a configuration.

    Args:
        config: gives all the names.
        profile: of the same configuration.
        state: tells the state of a local model, by id.
    """
    catalog = Catalog(config)

    def state_of(target: str) -> str | None:
        model = catalog.find(target)
        return None if model is None else state(model.id)

    return Directory(catalog, config.peers, profile, Selectors(config.selectors, state_of))


def shown(name: str) -> str:
    """Return what is told of a name that nothing has: all of it, if it is not too long."""
    return name if len(name) <= MOST_SHOWN else f"{name[:MOST_SHOWN]}..."


def qualified_name(remote: Remote) -> str:
    """Return the name that is a peer's model's alone."""
    return f"{remote.peer.id}/{remote.model}"
