"""`twistd llamaswap`: options, and the one place that names the global reactor."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Mapping, Sequence
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
from llamaswap.generation import DaemonReactor
from llamaswap.listening import DEFAULT_ADDRESS, BadAddress, endpoints_of
from llamaswap.service import CannotStart, LlamaSwapService


class Options(UsageOptions):
    """The command line of `twistd llamaswap`."""

    synopsis = "[options]"
    longdesc = "Serve many models from one GPU, the most urgent request first."
    optParameters = [  # noqa: RUF012 - Twisted's own way to declare them
        ["config", "c", None, "Configuration file (YAML)."],
        ["config-dir", None, None, "Directory whose *.yml and *.yaml files are merged in."],
    ]

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Twisted's Options are untyped
        self.addresses: list[str] = []
        self.config: Config | None = None

    def opt_listen(self, address: str) -> None:
        """Where to listen: host:port, :port or a Twisted endpoint; may be repeated. [127.0.0.1:8080]"""
        self.addresses.append(address)

    opt_l = opt_listen

    @override
    def postOptions(self) -> None:
        """Load the configuration; every mistake is printed, and the exit code is 1."""
        try:
            for address in self.addresses:
                endpoints_of(address, dual_stack=True)
        except BadAddress as bad:
            raise UsageError(str(bad)) from bad
        try:
            self.config = load_config(self["config"], self["config-dir"], os.environ)
        except ConfigRejected as rejected:
            raise SystemExit(str(rejected)) from None


def load_config(config: str | None, config_dir: str | None, environ: Mapping[str, str]) -> Config:
    """Load what the command line names.

    Raises:
        ConfigRejected: it has mistakes, or nothing was named.
    """
    return load(Path(config) if config else None, Path(config_dir) if config_dir else None, environ)


def endpoints(addresses: Sequence[str]) -> list[str]:
    """Return the endpoint descriptions of all addresses, the default one if there are none."""
    dual_stack = _has_ipv6()
    return [
        description
        for address in addresses or [DEFAULT_ADDRESS]
        for description in endpoints_of(address, dual_stack=dual_stack)
    ]


def make_daemon(config: Config, addresses: Sequence[str]) -> LlamaSwapService:
    """Wire the daemon to this process's reactor, clocks and environment.

    The reactor's clock is wall-clock time as it comes; a step of the system's
    clock would fire every timer at once and let tickets come from the future.
    """
    from twisted.internet import reactor

    reactor.seconds = time.monotonic  # type: ignore[method-assign]  # every timer asks this attribute
    reactor.addSystemEventTrigger("before", "shutdown", ignore_further_signals)
    return LlamaSwapService(
        config,
        endpoints(addresses),
        reactor=cast("DaemonReactor", reactor),
        environ=os.environ,
        wall=time.time,  # noqa: TID251 - the one place
    )


def ignore_further_signals() -> None:
    """One signal is enough: Twisted logs a traceback when it is told to stop while it stops.

    A function, not SIG_IGN: what we still start, such as a `cmdStop`, would inherit that.
    """
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, lambda _signum, _frame: None)


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
    assert options.config is not None
    return cast("IService", _Quiet(make_daemon(options.config, options.addresses)))


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
