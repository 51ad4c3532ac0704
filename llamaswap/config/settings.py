"""The global settings, and the small sections: `store`, `ui`, `performance`, `upstream`, `hooks`.

Knows what concerns no single model.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

from llamaswap.config.durations import parse_duration
from llamaswap.config.keepalive import read_keepalive
from llamaswap.config.limits import read_limits
from llamaswap.config.model import Config, PerformanceConfig
from llamaswap.config.names import Names
from llamaswap.config.nodes import Scalar, Timestamp, describe
from llamaswap.config.reading import Section
from llamaswap.config.regexes import WrongRegex, compile_re2

SHORTEST_HEALTH_CHECK = 15  # seconds
SHORTEST_SAMPLING_MS = 5000
MOST_IGNORE_PATHS = 500

_SECTIONS = (
    "models",
    "peers",
    "selectors",
    "profiles",
    "hooks",
    "routing",
    "groups",
    "matrix",
    "macros",
    "priorities",
)
_SETTINGS = (
    "healthCheckTimeout",
    "unloadTimeout",
    "globalTTL",
    "startPort",
    "logLevel",
    "logTimeFormat",
    "logToStdout",
    "logRequests",
    "metricsMaxInMemory",
    "captureBuffer",
    "sendLoadingState",
    "includeAliasesInList",
    "apiKeys",
    "store",
    "ui",
    "performance",
    "limits",
    "keepAlive",
    "upstream",
)
OWN_KEYS = frozenset({*_SECTIONS, *_SETTINGS})
"""Every top-level key that means something."""

_NO_MODEL = "is no model or alias"
_DESTINATIONS = ("proxy", "upstream", "both", "none")
_LEVELS = ("debug", "info", "warn", "error")
LAYOUTS = (
    *("ansic", "kitchen", "rfc1123", "rfc1123z", "rfc3339", "rfc3339nano", "rfc822", "rfc822z", "rfc850"),
    *("rubydate", "stamp", "stampmicro", "stampmilli", "stampnano", "unixdate"),
)
"""What `logTimeFormat` may be, in any letter case."""

_NANOSECONDS_PER_MS = 1_000_000

StoreTrouble: TypeAlias = Callable[[str], str | None]
"""Why a database can't live at a path; None when it can."""


def read_settings(root: Section, store_trouble: StoreTrouble) -> Config:
    """Read everything global into an otherwise empty configuration."""
    defaults = Config()
    return Config(
        health_check_timeout=max(
            SHORTEST_HEALTH_CHECK, root.seconds("healthCheckTimeout", defaults.health_check_timeout)
        ),
        unload_timeout=_at_least(root, "unloadTimeout", 0) or defaults.unload_timeout,
        global_ttl=_at_least(root, "globalTTL", 0),
        start_port=read_start_port(root),
        log_level=_log_level(root, defaults.log_level),
        log_time_format=_log_time_format(root),
        log_to_stdout=_destination(root, defaults.log_to_stdout),
        log_requests=root.flag("logRequests"),
        metrics_max_in_memory=root.whole("metricsMaxInMemory", defaults.metrics_max_in_memory),
        capture_buffer=root.whole("captureBuffer", defaults.capture_buffer, unit="MiB"),
        send_loading_state=root.flag("sendLoadingState"),
        include_aliases_in_list=root.flag("includeAliasesInList"),
        api_keys=_api_keys(root),
        store_path=_store(root, store_trouble),
        session_headers=_session_headers(root.section("ui"), defaults.session_headers),
        performance=_performance(root.section("performance"), defaults.performance),
        limits=read_limits(root.section("limits")),
        keep_alive=read_keepalive(root),
        ignore_paths=_ignore_paths(root.section("upstream"), defaults.ignore_paths),
    )


def read_start_port(root: Section) -> int:
    """The first port that `${PORT}` stands for."""
    port = root.whole("startPort", Config().start_port, unit="a port")
    if port < 1:
        root.wrong("startPort", f"expected a port from 1, got {port}")
    return port


def read_preload(root: Section, names: Names, groups: Collection[str]) -> tuple[str, ...]:
    """The models to load at start, by id; names that mean nothing are warned about and dropped.

    Args:
        groups: the ids of groups, which do not stand for their members here.
    """
    hooks = root.section("hooks")
    startup = hooks.section("on_startup")
    preload: list[str] = []
    for word in startup.words("preload"):
        name = word.text.strip()
        model = names.local(name)
        if model is not None:
            preload.append(model)
        elif name:
            what = "is a group, whose members have to be listed one by one" if name in groups else _NO_MODEL
            root.report.warn(word.place, word.path, f"{name!r} {what}, so nothing is loaded for it")
    startup.close()
    hooks.close()
    return tuple(preload)


def _at_least(root: Section, key: str, least: int) -> int:
    number = root.seconds(key)
    if number < least:
        root.wrong(key, f"expected seconds from {least}, got {number}")
    return number


def _log_level(root: Section, default: str) -> str:
    level = root.text("logLevel", default)
    if level.strip().lower() not in _LEVELS:
        guess = root.report.guess(level, _LEVELS)
        root.warn("logLevel", f"{level[:40]!r} is no level, so it is taken for 'info'{guess}")
    return level


def _log_time_format(root: Section) -> str:
    name = root.text("logTimeFormat")
    if (known := name.strip().lower()) and known not in LAYOUTS:
        guess = root.report.guess(known, LAYOUTS)
        root.warn("logTimeFormat", f"{name[:40]!r} is the name of no format, so lines have no time{guess}")
    return name


def _destination(root: Section, default: str) -> str:
    destination = root.text("logToStdout", default)
    if destination not in _DESTINATIONS:
        root.wrong("logToStdout", f"expected one of {', '.join(_DESTINATIONS)}, got {destination!r}")
    return destination


def _api_keys(root: Section) -> tuple[str, ...]:
    """Keys are secrets: a complaint never repeats one."""
    words = root.words("apiKeys")
    for word in words:
        if not word.text or " " in word.text:
            what = "contains a space" if word.text else "is empty"
            root.report.wrong(word.place, word.path, f"expected a key without spaces, but this one {what}")
    return tuple(word.text for word in words)


def _store(root: Section, store_trouble: StoreTrouble) -> str | None:
    if not root.has("store"):
        return None
    store = root.section("store")
    path = store.text("path")
    store.close()
    if not store.given:
        return None
    trouble = store_trouble(path.strip()) if path.strip() else "expected the path of a file"
    if trouble:
        store.wrong("path", trouble)
    return path


def _session_headers(ui: Section, default: tuple[str, ...]) -> tuple[str, ...]:
    activity = ui.section("activity")
    names = {
        name.lower(): name for word in reversed(activity.words("session_id")) if (name := word.text.strip())
    }
    ui.close()
    activity.close()
    return tuple(reversed(names.values())) if activity.mentions("session_id") else default


def _performance(section: Section, default: PerformanceConfig) -> PerformanceConfig:
    every = section.node("every")
    disabled = section.flag("disabled")
    section.close()
    if every is None:
        return PerformanceConfig(disabled=disabled, every_ms=default.every_ms)
    text = every.value if isinstance(every, Scalar) else None
    is_text = isinstance(text, str) and not isinstance(text, Timestamp)
    duration = parse_duration(text) if is_text and isinstance(text, str) else None
    if duration is None:
        section.wrong("every", f"expected a duration like 10s or 1m30s, got {describe(every)}")
        return default
    every_ms = duration // _NANOSECONDS_PER_MS or default.every_ms
    if duration and every_ms < SHORTEST_SAMPLING_MS:
        section.wrong("every", f"expected at least 5s, got {describe(every)}")
    return PerformanceConfig(disabled=disabled, every_ms=every_ms)


def _ignore_paths(section: Section, default: tuple[str, ...]) -> tuple[str, ...]:
    words = section.words("ignorePaths")
    section.close()
    if len(words) > MOST_IGNORE_PATHS:
        section.wrong("ignorePaths", f"expected at most {MOST_IGNORE_PATHS}, got {len(words)}")
    for word in words[:MOST_IGNORE_PATHS]:
        try:
            compile_re2(word.text)
        except WrongRegex as error:
            section.report.wrong(word.place, word.path, f"expected a regular expression (RE2): {error}")
    return tuple(word.text for word in words) or default
