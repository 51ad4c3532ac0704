"""What a caller gets of the dispatcher."""

from __future__ import annotations

from llamaswap.leases import Abandoned
from llamaswap.scheduling.vocabulary import Ticket


def test_an_abandoned_call_says_how_long_it_waited() -> None:
    ticket = Ticket(number=1, model="a", priority=0, arrived=2.0)

    gone = Abandoned(ticket, None, 3.04, {"serial_band": "normal"})

    assert str(gone) == "abandoned after 3.0 s"
    assert gone.metadata == {"serial_band": "normal"}
