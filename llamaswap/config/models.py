"""One entry of `models`, read: every setting of a model, with its inherited values.

Knows one model at a time; whether its names clash with others is `names`' subject.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from llamaswap.config.command import split_command
from llamaswap.config.filters import read_filters
from llamaswap.config.mistakes import Report
from llamaswap.config.model import Capabilities, Config, ModelConfig, Timeouts
from llamaswap.config.reading import Named, Section, Word, entry_section
from llamaswap.config.urls import leads_nowhere, url_trouble

COMFYUI = "comfyui_auto"
"""The model id that ComfyUI's routes use; it gets more concurrency and no websockets."""

COMFYUI_CONCURRENCY = 50
INHERIT_TTL = -1

_MODALITIES = ("text", "audio", "image")


@dataclass(frozen=True, slots=True)
class ReadModel:
    """A model, and its names where they stand in the file."""

    config: ModelConfig
    word: Word  # the id
    aliases: tuple[Word, ...]  # as listed
    keyed: tuple[Word, ...]  # keys of setParamsByID


def read_model(entry: Named, shared: Config, report: Report) -> ReadModel:
    """Read one model.

    Args:
        entry: the model, macros expanded.
        shared: the settings that models inherit.
        report: where mistakes go.
    """
    section = entry_section(entry, report)
    filters, keyed = read_filters(section.section("filters"), legacy=True)
    aliases = section.words("aliases")
    config = ModelConfig(
        id=entry.name,
        cmd=section.text("cmd"),
        cmd_stop=section.text("cmdStop"),
        proxy=section.text("proxy"),
        check_endpoint=section.text("checkEndpoint", "/health"),
        env=section.texts("env"),
        unlisted=section.flag("unlisted"),
        use_model_name=section.text("useModelName"),
        name=section.text("name"),
        description=section.text("description"),
        concurrency_limit=section.whole("concurrencyLimit"),
        protected=section.flag("protected"),
        filters=filters,
        metadata=section.free("metadata"),
        send_loading_state=section.flag("sendLoadingState", default=shared.send_loading_state),
        timeouts=read_timeouts(section.section("timeouts"), Timeouts()),
        capabilities=_capabilities(section.section("capabilities")),
        health_check_timeout=shared.health_check_timeout,
        ttl=_ttl(section, shared.global_ttl),
        unload_timeout=_unload_timeout(section, shared.unload_timeout),
    )
    config = _finished(config, section, aliases, keyed)
    return ReadModel(config, Word(entry.name, entry.place, entry.path), aliases, keyed)


def read_timeouts(section: Section, defaults: Timeouts) -> Timeouts:
    """Read a `timeouts` block over the defaults of its owner; seconds, not validated."""
    timeouts = Timeouts(
        connect=section.seconds("connect", defaults.connect),
        keepalive=section.seconds("keepalive", defaults.keepalive),
        response_header=section.seconds("responseHeader", defaults.response_header),
        tls_handshake=section.seconds("tlsHandshake", defaults.tls_handshake),
        expect_continue=section.seconds("expectContinue", defaults.expect_continue),
        idle_conn=section.seconds("idleConn", defaults.idle_conn),
    )
    section.close()
    return timeouts


def check_proxy(section: Section, text: str) -> None:
    """Complain about a `proxy` that is no URL, and doubt one that parses but leads nowhere."""
    shown = "this one" if "@" in text else repr(text[:60])  # there may be a password before the @
    if trouble := url_trouble(text):
        section.wrong("proxy", f"expected a URL, but {shown} {trouble}")
    elif text and (trouble := leads_nowhere(text)):
        section.warn("proxy", f"{shown} {trouble}, so nothing can be sent there")


def _finished(
    config: ModelConfig, section: Section, aliases: tuple[Word, ...], keyed: tuple[Word, ...]
) -> ModelConfig:
    """What follows from several settings, and the checks across them."""
    check_proxy(section, config.proxy)
    compat = section.section("compat")
    names = {word.text for word in aliases} | {key.text for key in keyed if key.text != config.id}
    config = replace(
        config,
        argv=split_command(config.cmd),
        aliases=tuple(sorted(names)),
        ignore_websockets=compat.flag("ignoreWebsockets"),
        drain_on_disconnect=compat.flag("drainOnDisconnect"),
    )
    compat.close()
    if config.id == COMFYUI:
        limit = max(config.concurrency_limit, COMFYUI_CONCURRENCY)
        config = replace(config, concurrency_limit=limit, ignore_websockets=True)
    _warn(config, section)
    return config


def _warn(config: ModelConfig, section: Section) -> None:
    if not config.argv:
        section.warn("cmd", "there is no command, so this model can't be started")
    if not config.proxy:
        section.warn("proxy", "there is no URL, so this model can't be used")
    if section.has("healthCheckTimeout"):
        section.warn("healthCheckTimeout", "the global setting is used, not this one")
    section.close("macros")


def _ttl(section: Section, inherited: int) -> int:
    ttl = section.seconds("ttl", INHERIT_TTL)
    if ttl < INHERIT_TTL:
        section.wrong("ttl", f"expected seconds, 0 (never) or -1 (globalTTL), got {ttl}")
    return inherited if ttl == INHERIT_TTL else ttl


def _unload_timeout(section: Section, inherited: int) -> int:
    timeout = section.seconds("unloadTimeout")
    if timeout < 0:
        section.wrong("unloadTimeout", f"expected seconds from 1, or 0 for the global value, got {timeout}")
    return timeout or inherited


def _capabilities(section: Section) -> Capabilities:
    context = section.whole("context")
    if context < 0:
        section.wrong("context", f"expected tokens from 0, got {context}")
    capabilities = Capabilities(
        inputs=_modalities(section, "in"),
        outputs=_modalities(section, "out"),
        tools=section.flag("tools"),
        reranker=section.flag("reranker"),
        context=context,
    )
    section.close()
    return capabilities


def _modalities(section: Section, key: str) -> tuple[str, ...]:
    words = section.words(key)
    for word in words:
        if word.text not in _MODALITIES:
            what = f"expected one of {', '.join(_MODALITIES)}, got {word.text!r}"
            section.report.wrong(word.place, word.path, what)
    return tuple(word.text for word in words)
