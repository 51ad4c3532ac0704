"""Load the configuration again and let the daemon go on under it; a bad one changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from twisted.logger import Logger

from llamaswap.config.load import load_stable
from llamaswap.config.mistakes import ConfigRejected
from llamaswap.config.source import ConfigUnstable
from llamaswap.service import CannotStart, LlamaSwapService


class Reloader:
    """Reloads one daemon from where it was started from.

    Args:
        environ: what `${env.NAME}` can refer to.
    """

    _log = Logger()

    def __init__(
        self,
        daemon: LlamaSwapService,
        config: Path | None,
        config_dir: Path | None,
        environ: Mapping[str, str],
    ) -> None:
        self._daemon = daemon
        self._config = config
        self._config_dir = config_dir
        self._environ = environ

    def reload(self) -> None:
        """Take the configuration as it is now; what is wrong with it is logged, line by line."""
        if not self._daemon.running:
            return
        try:
            config = load_stable(self._config, self._config_dir, self._environ, ports=self._daemon.ports)
            self._daemon.reload(config)
        except ConfigUnstable as why:
            self._log.warn("reload.put_off why={why}", why=str(why))
            self._daemon.kept("the files are changing")
        except ConfigRejected as why:
            self._reject(str(why))
            self._daemon.kept("the new one has mistakes")
        except CannotStart as why:
            self._reject(str(why))

    def _reject(self, why: str) -> None:
        for line in why.splitlines():
            self._log.warn("reload.rejected {line}", line=line)
        self._log.warn("reload.changed_nothing")
