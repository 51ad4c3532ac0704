"""Names that no public DNS would take, and operators give to their machines."""

from __future__ import annotations

import pytest
from twisted.internet.protocol import Factory, Protocol

from llamaswap.hosts import NamedEndpoint
from support.web_daemon import BoxReactor


@pytest.mark.parametrize("name", ["box", "llama_server", "gpu_1.lan.", "ab--cd", "-odd-", "b\u00fccher"])
def test_a_name_that_a_resolver_may_know_is_asked_for_as_it_is_written(name: str) -> None:
    reactor = BoxReactor()

    NamedEndpoint(reactor, name, 80).connect(Factory.forProtocol(Protocol))

    assert [client[0] for client in reactor.tcpClients] == [name]


@pytest.mark.parametrize("name", ["a" * 64, "a..b", "a b", "b\u00fc_cher", ""])
def test_what_can_be_no_name_is_refused_at_once(name: str) -> None:
    reactor = BoxReactor()
    failures: list[object] = []

    attempt = NamedEndpoint(reactor, name, 80).connect(Factory.forProtocol(Protocol))
    attempt.addErrback(lambda failure: failures.append(failure.value))

    assert isinstance(failures[0], ValueError)
    assert reactor.tcpClients == []
