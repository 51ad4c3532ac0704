"""One entry of `peers`, read: another server that offers models."""

from __future__ import annotations

from dataclasses import dataclass

from llamaswap.config.filters import read_filters
from llamaswap.config.mistakes import Report
from llamaswap.config.model import PeerConfig, Timeouts
from llamaswap.config.models import check_proxy, read_timeouts
from llamaswap.config.reading import Named, Word, entry_section

_TIMEOUTS = Timeouts(response_header=60)


@dataclass(frozen=True, slots=True)
class ReadPeer:
    """A peer, and its models where they stand in the file; one may be listed twice."""

    config: PeerConfig
    models: tuple[Word, ...]


def read_peer(entry: Named, report: Report) -> ReadPeer:
    """Read one peer; a null entry is a peer without anything."""
    section = entry_section(entry, report)
    filters, _ = read_filters(section.section("filters"), legacy=False)
    models = section.words("models")
    config = PeerConfig(
        id=entry.name,
        proxy=section.text("proxy"),
        models=tuple(word.text for word in models),
        api_key=section.text("apiKey"),
        filters=filters,
        timeouts=read_timeouts(section.section("timeouts"), _TIMEOUTS),
    )
    section.close()
    if section.zeroed:
        report.warn(entry.place, entry.path, "this peer offers nothing")
        return ReadPeer(config, models)
    if not config.proxy:
        section.wrong("proxy", "expected the peer's URL")
    check_proxy(section, config.proxy)
    if "\n" in config.api_key or "\r" in config.api_key:
        section.warn("apiKey", "holds a line end, as a block (|) does, so nothing can be sent to this peer")
    if not models:
        section.wrong("models", "expected at least one model")
    return ReadPeer(config, models)
