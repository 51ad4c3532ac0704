"""What a caller gets of the dispatcher."""

from __future__ import annotations

import pytest

from llamaswap.leases import Abandoned, Use
from llamaswap.scheduling.vocabulary import Ticket
from support.processes_fakes import Rig


def test_a_server_that_is_in_use_does_not_expire() -> None:
    rig = Rig(ttl=5)
    rig.load()

    with Use(rig.server):
        rig.clock.advance(60.0)
        assert rig.child.signals == []

    rig.clock.advance(5.0)
    assert rig.child.signals == ["TERM"]


def test_a_use_ends_with_its_block_however_that_ends() -> None:
    rig = Rig(ttl=5)
    rig.load()

    with pytest.raises(ZeroDivisionError), Use(rig.server):
        raise ZeroDivisionError

    assert rig.server.report().uses == 0


def test_an_abandoned_call_says_how_long_it_waited() -> None:
    ticket = Ticket(number=1, model="a", priority=0, arrived=2.0)

    gone = Abandoned(ticket, None, 3.04, {"serial_band": "normal"})

    assert str(gone) == "abandoned after 3.0 s"
    assert gone.metadata == {"serial_band": "normal"}
