"""`twistd llamaswap`: options, and the one place that names the global reactor."""

from __future__ import annotations

import faulthandler
import gc
import os
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from twisted.application.service import IService, Service
from twisted.python.usage import Options as UsageOptions
from twisted.python.usage import UsageError
from typing_extensions import override
from zope.interface import implementer

from llamaswap.config.load import load
from llamaswap.config.mistakes import ConfigRejected
from llamaswap.config.model import Config
from llamaswap.doors import claim_descriptors
from llamaswap.inherited import descriptions_of, here, keep_from_children
from llamaswap.listening import DEFAULT_ADDRESS, BadAddress, endpoints_of
from llamaswap.reloading import Reloader
from llamaswap.service import CannotStart, LlamaSwapService
from llamaswap.signalling import SignalledReactor, Signals
from llamaswap.supervision import patience_of
from llamaswap.surroundings import DaemonReactor
from llamaswap.tls import DEFAULT_ADDRESS as TLS_ADDRESS
from llamaswap.tls import BadCertificate, pair_of, read_pair, with_tls
from llamaswap.watching import ConfigWatcher


class Options(UsageOptions):
    """The command line of `twistd llamaswap`."""

    synopsis = "[options]"
    longdesc = "Serve many models from one GPU, the most urgent request first."
    optParameters = [  # noqa: RUF012 - Twisted's own way to declare them
        ["config", "c", None, "Configuration file (YAML)."],
        ["config-dir", None, None, "Directory whose *.yml and *.yaml files are merged in."],
        ["tls-cert-file", None, "", "Certificate, in PEM; every address then speaks TLS."],
        ["tls-key-file", None, "", "Its private key."],
    ]
    optFlags = [  # noqa: RUF012 - likewise
        ["watch-config", None, "Reload when the configuration changes; SIGHUP does so in any case."],
    ]

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Twisted's Options are untyped
        self.addresses: list[str] = []
        self.plan: Plan | None = None

    def opt_listen(self, address: str) -> None:
        """Where to listen: host:port, :port or a Twisted endpoint; may be repeated.

        Without it, the sockets that systemd has opened, else 127.0.0.1:8080.
        """
        if address:  # an empty variable of a unit says nothing
            self.addresses.append(address)

    opt_l = opt_listen

    @override
    def postOptions(self) -> None:
        """Load the configuration; every mistake is printed, and the exit code is 1."""
        try:
            self.plan = make_plan(
                self["config"],
                self["config-dir"],
                self.addresses,
                watch=bool(self["watch-config"]),
                tls=(self["tls-cert-file"], self["tls-key-file"]),
                environ=os.environ,
            )
        except BadAddress as bad:
            raise UsageError(str(bad)) from bad
        except (ConfigRejected, BadCertificate) as why:
            raise SystemExit(str(why)) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a command line asks for, with everything that could be wrong about it found out."""

    config: Config
    config_file: Path | None
    config_dir: Path | None
    endpoints: Sequence[str]  # Twisted endpoint descriptions
    watch: bool


def make_plan(
    config_file: str | None,
    config_dir: str | None,
    addresses: Sequence[str],
    *,
    watch: bool,
    tls: tuple[str, str],
    environ: Mapping[str, str],
) -> Plan:
    """Load what a command line names.

    Args:
        tls: certificate and key file, '' for none.

    Raises:
        ConfigRejected: the configuration has mistakes, or nothing was named.
        BadAddress: something is no address to listen on.
        BadCertificate: only one file was named, or they can't be used.
    """
    pair = pair_of(*tls)
    left_to_us = descriptions_of(here())
    wanted = addresses or left_to_us or [DEFAULT_ADDRESS if pair is None else TLS_ADDRESS]
    descriptions = endpoints(wanted)
    if pair is not None:
        pair = read_pair(pair)
        descriptions = [with_tls(description, pair) for description in descriptions]
    file = Path(config_file) if config_file else None
    folder = Path(config_dir) if config_dir else None
    config = load(file, folder, environ)
    return Plan(config=config, config_file=file, config_dir=folder, endpoints=descriptions, watch=watch)


def endpoints(addresses: Sequence[str]) -> list[str]:
    """Return the endpoint descriptions of all addresses."""
    dual_stack = _has_ipv6()
    return [
        description for address in addresses for description in endpoints_of(address, dual_stack=dual_stack)
    ]


def make_daemon(plan: Plan) -> LlamaSwapService:
    """Wire the daemon to this process's reactor, clocks, signals and environment.

    The reactor's clock is wall-clock time as it comes; a step of the system's
    clock would fire every timer at once and let tickets come from the future.
    """
    from twisted.internet import reactor

    reactor.seconds = time.monotonic  # type: ignore[method-assign]  # every timer asks this attribute
    if patience_of(os.environ, os.getpid()) is not None:
        # A reactor that is stuck is ended with SIGABRT; where it was stuck then stands on stderr.
        faulthandler.enable(STDERR)
    keep_from_children()
    daemon_reactor = cast("DaemonReactor", reactor)
    daemon = LlamaSwapService(
        plan.config,
        plan.endpoints,
        reactor=daemon_reactor,
        environ=os.environ,
        wall=time.time,  # noqa: TID251 - the one place
        descriptors=claim_descriptors(),
    )
    reloader = Reloader(daemon, plan.config_file, plan.config_dir, os.environ)
    Signals(cast("SignalledReactor", reactor), hurry=daemon.hurry, reload=reloader.reload).heed()
    if plan.watch:
        watcher = ConfigWatcher(plan.config_file, plan.config_dir, daemon_reactor, reloader.reload)
        reactor.callWhenRunning(watcher.start)
        reactor.addSystemEventTrigger("before", "shutdown", watcher.stop)
    reactor.callWhenRunning(settle_memory)
    return daemon


STDERR = 2

COLLECT_AFTER = 20_000
"""New containers between two looks for garbage; Python's own 700 make it look several times a second."""


def settle_memory() -> None:
    """Take what is there now for permanent, so that no search for garbage walks through it again.

    Modules and configuration are some 60 000 objects; walking through them takes 17 ms, in which
    nobody is served.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, 20, 20)


@implementer(IService)
class _Quiet(Service):
    """Starts a daemon so that a reason not to start is one line instead of a traceback."""

    def __init__(self, daemon: LlamaSwapService) -> None:
        self._daemon = daemon

    @override
    def startService(self) -> None:
        super().startService()  # type: ignore[no-untyped-call]  # Twisted's Service is untyped
        try:
            self._daemon.startService()
        except CannotStart as why:
            raise SystemExit(f"llamaswap: {why}") from None

    @override
    def stopService(self) -> object:
        super().stopService()  # type: ignore[no-untyped-call]  # Twisted's Service is untyped
        return self._daemon.stopService()


def makeService(options: Options) -> IService:
    """Return the service that `twistd llamaswap` runs."""
    assert options.plan is not None
    return cast("IService", _Quiet(make_daemon(options.plan)))


def _has_ipv6() -> bool:
    """Return whether this host has an IPv6 loopback."""
    if not socket.has_ipv6:
        return False
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True
