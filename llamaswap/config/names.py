"""What a requested name can mean: a model, an alias, a peer's model; and which names clash.

Knows the name space across sections.  Selectors and profiles ask it about their targets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from llamaswap.config.mistakes import Report
from llamaswap.config.models import ReadModel
from llamaswap.config.peers import ReadPeer
from llamaswap.config.reading import Word


@dataclass(frozen=True, slots=True)
class Names:
    """Every name that stands for a model, before selectors and profiles."""

    models: frozenset[str]
    aliases: Mapping[str, str]  # to model ids; an alias that is a model id means the model
    qualified: frozenset[str]  # `<peer>/<model>`
    bare: Mapping[str, tuple[str, ...]]  # the peers that offer a model under its bare name

    def local(self, name: str) -> str | None:
        """The model id that a name means here; None for anything else."""
        return name if name in self.models else self.aliases.get(name)

    def remote(self, name: str) -> str | None:
        """`<peer>/<model>` as it is, or a bare name that exactly one peer offers."""
        if name in self.qualified:
            return name
        offers = self.bare.get(name, ())
        return f"{offers[0]}/{name}" if len(offers) == 1 else None

    def destination(self, name: str) -> str | None:
        """What serves this name, as one comparable text; None when nothing does."""
        return self.local(name) or self.remote(name)

    def is_taken(self, name: str) -> bool:
        """Whether a name is a model's or an alias."""
        return name in self.models or name in self.aliases

    def why_not(self, name: str, report: Report) -> str:
        """How to say that `destination` found nothing."""
        if len(self.bare.get(name, ())) > 1:
            return f"{name!r} is offered by more than one peer; write '{self.bare[name][0]}/{name}'"
        known = (*self.models, *self.aliases, *self.qualified)
        return f"{name!r} is no model, alias or peer's model{report.guess(name, known)}"


def gather(models: Iterable[ReadModel], peers: Iterable[ReadPeer], report: Report) -> Names:
    """Collect all names; clashes are reported where the later one stands."""
    models, peers = tuple(models), tuple(peers)
    ids = frozenset(model.config.id for model in models)
    aliases = _aliases(models, ids, report)
    qualified, bare = _peer_names(peers, report)
    for word in _local_words(models):
        if word.text in qualified:
            report.wrong(
                word.place, word.path, f"{word.text!r} is already a peer's model: {qualified[word.text]}"
            )
    return Names(ids, aliases, frozenset(qualified), bare)


def _aliases(models: tuple[ReadModel, ...], ids: frozenset[str], report: Report) -> dict[str, str]:
    owners: dict[str, tuple[str, Word]] = {}
    for model in models:
        for alias in model.aliases:
            if alias.text in owners:
                owner = owners[alias.text]
                report.wrong(
                    alias.place, alias.path, f"alias {alias.text!r} is already used at {owner[1].place}"
                )
                continue
            if alias.text in ids and alias.text != model.config.id:
                report.warn(
                    alias.place, alias.path, f"{alias.text!r} is a model id, so this alias is never used"
                )
            owners[alias.text] = (model.config.id, alias)
    for model in models:
        for key in model.keyed:
            _add_key(key, model.config.id, owners, ids, report)
    return {name: owner for name, (owner, _) in owners.items()}


def _add_key(
    key: Word, model: str, owners: dict[str, tuple[str, Word]], ids: frozenset[str], report: Report
) -> None:
    """A key of `setParamsByID` is an alias too, unless it is the model's own id."""
    if key.text == model:
        return
    if key.text in ids:
        report.wrong(key.place, key.path, f"{key.text!r} is another model's id")
    elif key.text in owners and owners[key.text][0] != model:
        report.wrong(key.place, key.path, f"{key.text!r} is an alias of {owners[key.text][0]!r}")
    else:
        owners.setdefault(key.text, (model, key))


def _peer_names(
    peers: tuple[ReadPeer, ...], report: Report
) -> tuple[dict[str, str], dict[str, tuple[str, ...]]]:
    qualified: dict[str, str] = {}
    bare: dict[str, tuple[str, ...]] = {}
    for peer in peers:
        for word in {word.text: word for word in reversed(peer.models)}.values():
            full = f"{peer.config.id}/{word.text}"
            if full in qualified:
                report.wrong(word.place, word.path, f"{full!r} is already offered by {qualified[full]!r}")
            qualified[full] = peer.config.id
            bare[word.text] = (*bare.get(word.text, ()), peer.config.id)
    return qualified, bare


def _local_words(models: tuple[ReadModel, ...]) -> Iterable[Word]:
    for model in models:
        yield model.word
        yield from model.aliases
        yield from (key for key in model.keyed if key.text != model.config.id)
