"""What a configuration says, once it has been read: frozen values, no behaviour.

Every default, macro and inherited setting is already applied: a reader of these
values never asks "and if it is not set?".  Field names are the file's keys in
snake_case; `docs` for each key are in `etc/config.example.yaml`.  Durations are
whole seconds, as in the file, unless the name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

DEFAULT_CONCURRENCY_LIMIT = 10
"""What `concurrencyLimit: 0` means under `fifo`, requests per model."""

NO_MAPPING: Mapping[str, Any] = MappingProxyType({})


def _no_mapping() -> Mapping[str, Any]:
    return NO_MAPPING


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Limits on one upstream connection, in seconds; 0 means none."""

    connect: int = 30
    keepalive: int = 30
    response_header: int = 0
    tls_handshake: int = 10
    expect_continue: int = 1
    idle_conn: int = 90


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Edits of a request body before it goes upstream; never of `model`."""

    strip: tuple[str, ...] = ()  # sorted, clean
    set: Mapping[str, Any] = field(default_factory=_no_mapping)
    set_by_id: Mapping[str, Mapping[str, Any]] = field(default_factory=_no_mapping)


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a model says it can do, for `/v1/models`; all empty = not configured."""

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    tools: bool = False
    reranker: bool = False
    context: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelConfig:
    """One entry of `models`."""

    id: str
    cmd: str = ""  # as written, macros expanded
    argv: tuple[str, ...] = ()  # its words; empty = cannot be started
    cmd_stop: str = ""  # `${PID}` still in place
    proxy: str = ""  # URL; empty = cannot be started
    # What replaced `${PORT}`.  Not compared: wherever it went, it is compared there.
    port: int | None = field(default=None, compare=False)
    check_endpoint: str = "/health"  # `none` = ready as soon as it runs
    aliases: tuple[str, ...] = ()  # sorted; explicit ones and those from `setParamsByID`
    env: tuple[str, ...] = ()  # NAME=value, later wins
    ttl: int = 0  # effective seconds; 0 = never
    unload_timeout: int = 10  # effective seconds
    health_check_timeout: int = 120
    unlisted: bool = False
    use_model_name: str = ""
    name: str = ""
    description: str = ""
    concurrency_limit: int = 0  # as configured; <= 0 is the scheduler's default
    filters: Filters = field(default_factory=Filters)
    metadata: Mapping[str, Any] = field(default_factory=_no_mapping)
    send_loading_state: bool = False
    timeouts: Timeouts = field(default_factory=Timeouts)
    ignore_websockets: bool = False
    drain_on_disconnect: bool = False  # `compat.drainOnDisconnect`, ours
    protected: bool = False  # ours: no request for another model may evict it
    capabilities: Capabilities = field(default_factory=Capabilities)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupConfig:
    """One entry of `groups`, the implicit `(default)` included."""

    id: str
    swap: bool = True
    exclusive: bool = True
    persistent: bool = False
    members: tuple[str, ...] = ()  # sorted


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixConfig:
    """`matrix`: which models may be loaded together."""

    vars: Mapping[str, str] = field(default_factory=_no_mapping)
    costs: Mapping[str, int] = field(default_factory=_no_mapping)  # by real model id
    sets: tuple[tuple[str, str], ...] = ()  # (name, expression) in the order they are considered


class SchedulerName(StrEnum):
    """The values of `routing.scheduler.use`."""

    FIFO = "fifo"
    SERIAL = "serial"


@dataclass(frozen=True, slots=True, kw_only=True)
class SerialSettings:
    """`routing.scheduler.settings.serial`."""

    aging_divisor: float = 60.0  # seconds of waiting per point, >= 0; 0 disables aging
    swap_affinity_bonus: int = 10  # points, 0..99; 0 disables it
    swap_budget: float = 0.0  # seconds of estimated work that may go before a swap, >= 0; 0 = none
    width: Mapping[str, int] = field(default_factory=_no_mapping)  # real model id -> jobs at once; default 1
    max_wait: Mapping[str, float] = field(default_factory=_no_mapping)  # band -> seconds; missing = no bound
    max_queue: Mapping[str, int] = field(default_factory=_no_mapping)  # band -> tickets; missing = no bound


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfig:
    """`routing.scheduler`."""

    use: SchedulerName = SchedulerName.FIFO
    configured: bool = False  # the section says something; without it everything is as in llama-swap
    serial: SerialSettings = field(default_factory=SerialSettings)
    fifo_priority: Mapping[str, int] = field(default_factory=_no_mapping)  # as written, keys not resolved


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerConfig:
    """One entry of `peers`: another server that offers models."""

    id: str
    proxy: str = ""
    models: tuple[str, ...] = ()
    api_key: str = field(default="", repr=False)
    filters: Filters = field(default_factory=Filters)
    timeouts: Timeouts = field(default_factory=lambda: Timeouts(response_header=60))


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectorConfig:
    """One entry of `selectors`: a virtual model id."""

    id: str
    strategy: str
    targets: tuple[str, ...]
    spillover: int = 1
    name: str = ""
    description: str = ""
    unlisted: bool = False
    metadata: Mapping[str, Any] = field(default_factory=_no_mapping)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileConfig:
    """One entry of `profiles`; a disabled pin has the target ''."""

    id: str
    description: str = ""
    pins: Mapping[str, str] = field(default_factory=_no_mapping)


@dataclass(frozen=True, slots=True, kw_only=True)
class PerformanceConfig:
    """`performance`: the host and GPU sampler."""

    disabled: bool = False
    every_ms: int = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsConfig:
    """`limits`, ours: what everybody together may cost the daemon; 0 = no limit."""

    connections: int = 0  # of clients, open at once; never more than the descriptors allow
    waiting: int = 20_000  # requests that wait for their turn, or for the load of their model
    request_body: int = 1 << 30  # bytes of one body
    held_bodies: int | None = None  # bytes of all bodies; None = a share of the machine's memory
    slow_client: int = 8 << 20  # bytes of an answer that wait for its client
    readers: int = 256  # of events and of logs, together


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAliveConfig:
    """`keepAlive`, ours: signs of life for clients that wait; 0 = none."""

    stream: float = 0.0  # seconds between two comments in an event stream
    json: float = 0.0  # seconds between two spaces before a JSON answer


@dataclass(frozen=True, slots=True, kw_only=True)
class CallerConfig:
    """One entry of `priorities.callers`, ours: who may ask for what."""

    name: str
    keys: tuple[str, ...] = field(default=(), repr=False)  # some of `api_keys`
    default_priority: int | None = None  # of a request without the header
    max_priority: int | None = None  # what it asks for beyond that counts as that
    offset: int = 0  # points added inside the band, 0..98


@dataclass(frozen=True, slots=True, kw_only=True)
class PrioritiesConfig:
    """`priorities`, ours: what a priority is where the request does not say, and how far it may go."""

    callers: tuple[CallerConfig, ...] = ()
    models: Mapping[str, int] = field(default_factory=_no_mapping)  # real model id -> default priority


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The whole file, or several merged ones."""

    models: Mapping[str, ModelConfig] = field(default_factory=_no_mapping)  # sorted by id
    names: Mapping[str, str] = field(default_factory=_no_mapping)  # alias -> model id
    router: str = "group"  # or "matrix"
    groups: tuple[GroupConfig, ...] = ()
    matrix: MatrixConfig | None = None
    scheduler: SchedulerConfig = field(default_factory=SchedulerConfig)
    peers: Mapping[str, PeerConfig] = field(default_factory=_no_mapping)
    selectors: Mapping[str, SelectorConfig] = field(default_factory=_no_mapping)
    profiles: Mapping[str, ProfileConfig] = field(default_factory=_no_mapping)
    preload: tuple[str, ...] = ()  # resolved model ids, in list order
    api_keys: tuple[str, ...] = field(default=(), repr=False)
    ignore_paths: tuple[str, ...] = (r".*\.(js|json|css|png|gif|jpg|jpeg|ico|txt)$",)
    session_headers: tuple[str, ...] = ("X-Session-ID", "X-Litellm-Session-Id")
    performance: PerformanceConfig = field(default_factory=PerformanceConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    keep_alive: KeepAliveConfig = field(default_factory=KeepAliveConfig)
    priorities: PrioritiesConfig = field(default_factory=PrioritiesConfig)
    store_path: str | None = None  # None = in memory
    health_check_timeout: int = 120
    unload_timeout: int = 10
    global_ttl: int = 0
    start_port: int = 5800
    log_level: str = "info"
    log_time_format: str = ""
    log_to_stdout: str = "proxy"
    log_requests: bool = False
    metrics_max_in_memory: int = 1000
    capture_buffer: int = 5  # MiB
    send_loading_state: bool = False
    include_aliases_in_list: bool = False
    warnings: tuple[str, ...] = ()  # one line each, ready for the log
