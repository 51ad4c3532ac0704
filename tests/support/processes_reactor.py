"""Tests that run on the real reactor, with types."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

import pytest_twisted  # type: ignore[import-untyped]  # it comes without types
from twisted.internet.defer import Deferred

Parameters = ParamSpec("Parameters")


def on_the_reactor(test: Callable[Parameters, Coroutine[Any, Any, None]]) -> Callable[Parameters, Any]:
    """Let a coroutine be a test."""
    decorated: Callable[Parameters, Any] = pytest_twisted.ensureDeferred(test)
    return decorated


def wait_for(deferred: Deferred[None]) -> None:
    """Let the reactor run until it has fired; for fixtures."""
    pytest_twisted.blockon(deferred)


def the_reactor() -> Any:
    """The reactor that the tests run on."""
    from twisted.internet import reactor

    return reactor
