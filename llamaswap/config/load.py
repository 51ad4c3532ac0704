"""Files to a `Config`: the order of the steps, and nothing of what they do."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as Names
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from llamaswap.config import source
from llamaswap.config.block_scalars import written_out
from llamaswap.config.document import NotYaml, compose
from llamaswap.config.environment import substitute
from llamaswap.config.expanding import expand
from llamaswap.config.macro_scopes import apply_macros
from llamaswap.config.macros import TooMuchText
from llamaswap.config.merging import merge
from llamaswap.config.mistakes import ConfigRejected, Mistake, Place, Report
from llamaswap.config.model import Config, ModelConfig
from llamaswap.config.models import read_model
from llamaswap.config.names import Names as Namespace
from llamaswap.config.names import gather
from llamaswap.config.nodes import Mapping, Scalar, Sequence, describe
from llamaswap.config.peers import read_peer
from llamaswap.config.ports import NO_PORTS
from llamaswap.config.priorities import read_priorities
from llamaswap.config.profiles import read_profiles
from llamaswap.config.reading import Section
from llamaswap.config.routing import Routing, read_routing
from llamaswap.config.selectors import read_selectors
from llamaswap.config.settings import OWN_KEYS, StoreTrouble, read_preload, read_settings
from llamaswap.config.source import ConfigUnstable
from llamaswap.config.stores import anchor_stores

__all__ = ["ConfigRejected", "ConfigUnstable", "Mistake", "load", "load_stable", "load_text"]

Complain: TypeAlias = "Callable[[Place, str, str], None]"

_NO_ENVIRONMENT: Names[str, str] = MappingProxyType({})


def load(
    config: Path | None,
    config_dir: Path | None,
    environ: Names[str, str],
    *,
    ports: Names[str, int] = NO_PORTS,
) -> Config:
    """Read a configuration file, the files of a directory, or both.

    Args:
        config: the file; None when there is none.
        config_dir: a directory whose `*.yml` and `*.yaml` files are merged in.
        environ: what `${env.NAME}` can refer to.
        ports: by model id, the ports in use; a model keeps its own if that is not below
            `startPort`, and nobody else gets one of them.

    Raises:
        ConfigRejected: with every mistake that could be found.
    """
    report = Report()
    sources = source.read_sources(config, config_dir, report)
    return _load(sources, environ, source.store_trouble, report, ports)


def load_stable(
    config: Path | None,
    config_dir: Path | None,
    environ: Names[str, str],
    *,
    ports: Names[str, int] = NO_PORTS,
) -> Config:
    """`load` for whoever has a configuration already: what looks half-written is not acted on.

    Raises:
        ConfigUnstable: a file changed while it was read, or is empty.
        ConfigRejected: with every mistake that could be found.
    """
    sources, report = source.read_stable(config, config_dir)
    return _load(sources, environ, source.store_trouble, report, ports, may_say_nothing=False)


def load_text(
    text: str,
    *,
    file: str = "config.yaml",
    environ: Names[str, str] = _NO_ENVIRONMENT,
    ports: Names[str, int] = NO_PORTS,
) -> Config:
    """Read a configuration from a text; the disk is not looked at.

    Raises:
        ConfigRejected: with every mistake that could be found.
    """
    only = source.Source(file, text.removeprefix("\ufeff"))
    return _load([only], environ, lambda _: None, Report([file]), ports)


def _load(
    sources: list[source.Source],
    environ: Names[str, str],
    store_trouble: StoreTrouble,
    report: Report,
    ports: Names[str, int],
    *,
    may_say_nothing: bool = True,
) -> Config:
    complain = report.warn if may_say_nothing else report.wrong
    read = (_document(one, environ, report, complain) for one in sources)
    documents = [document for document in read if document is not None]
    report.reject_if_wrong()
    start = Place(report.files[0] if report.files else "")
    merged = merge(documents, report) if documents else Mapping(start)
    report.reject_if_wrong()
    try:
        root, given = apply_macros(expand(merged), OWN_KEYS, report, ports)
    except (NotYaml, TooMuchText) as error:
        report.wrong(error.place, "", error.what)
        raise report.rejection() from error
    config = _read(written_out(root), anchor_stores(merged), store_trouble, report)
    report.reject_if_wrong()
    return replace(config, models=_with_ports(config.models, given), warnings=report.warnings())


def _with_ports(models: Names[str, ModelConfig], given: Names[str, int]) -> Names[str, ModelConfig]:
    """The models, each of those that were given a port with it."""
    return MappingProxyType(
        {name: replace(model, port=given[name]) if name in given else model for name, model in models.items()}
    )


def _document(
    one: source.Source, environ: Names[str, str], report: Report, complain: Complain
) -> Mapping | None:
    """One file's mapping; None when it says nothing, or nothing that can be read.

    To llama-swap a text says nothing, too; as likely it is half of a file, or somebody's error page.
    """
    text = substitute(one.file, one.text, environ, report)
    try:
        root = compose(text.text, text.locate)
    except NotYaml as error:
        report.wrong(error.place, "", error.what)
        return None
    if isinstance(root, Mapping):
        return root if root.entries else None
    if isinstance(root, Sequence) and root.items:
        report.wrong(root.place, "", f"expected a mapping, got {describe(root)}")
    if isinstance(root, Scalar) and root.value is not None:
        complain(root.place, "", f"expected a mapping, got {describe(root)}, which says nothing")
    return None


def _read(root: Mapping, stores: frozenset[str], store_trouble: StoreTrouble, report: Report) -> Config:
    section = Section(root, root.place, "", report)
    shared = read_settings(section, store_trouble)
    models = tuple(read_model(entry, shared, report) for entry in section.named("models"))
    peers = tuple(read_peer(entry, report) for entry in section.named("peers"))
    names = gather(models, peers, report)
    routing = read_routing(section, names, report)
    config = replace(
        shared,
        models=MappingProxyType({model.config.id: model.config for model in models}),
        names=MappingProxyType(dict(names.aliases)),
        peers=MappingProxyType({peer.config.id: peer.config for peer in peers}),
        preload=read_preload(section, names, {group.id for group in routing.groups}),
        router=routing.router,
        groups=routing.groups,
        matrix=routing.matrix_config,
        scheduler=routing.scheduler,
        priorities=read_priorities(section.section("priorities"), names, shared.api_keys, routing.scheduler),
    )
    config = _read_virtual(config, section, names, routing, report)
    section.close("macros", *stores)
    return config


def _read_virtual(
    config: Config, section: Section, names: Namespace, routing: Routing, report: Report
) -> Config:
    """Selectors and profiles, which refer to everything else."""
    selectors = read_selectors(section.named("selectors"), names, routing.coexist, report)
    ids = frozenset(selector.id for selector in selectors)
    profiles = read_profiles(section.named("profiles"), names, ids, report)
    return replace(
        config,
        selectors=MappingProxyType({selector.id: selector for selector in selectors}),
        profiles=MappingProxyType({profile.id: profile for profile in profiles}),
    )
