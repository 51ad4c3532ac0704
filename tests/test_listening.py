"""What people may write to say where to listen."""

from __future__ import annotations

import pytest

from llamaswap.listening import DEFAULT_ADDRESS, BadAddress, endpoints_of


@pytest.mark.parametrize(
    ("address", "descriptions"),
    [
        (DEFAULT_ADDRESS, ["tcp:8080:interface=127.0.0.1:backlog=4096"]),
        ("127.0.0.1:80", ["tcp:80:interface=127.0.0.1:backlog=4096"]),
        ("box.example:65535", ["tcp:65535:interface=box.example:backlog=4096"]),
        (" 10.0.0.1:0 ", ["tcp:0:interface=10.0.0.1:backlog=4096"]),
        (":8080", [r"tcp6:8080:interface=\:\::backlog=4096"]),
        ("0.0.0.0:8080", ["tcp:8080:interface=0.0.0.0:backlog=4096"]),
        ("[::]:8080", [r"tcp6:8080:interface=\:\::backlog=4096"]),
        ("[::1]:8080", [r"tcp6:8080:interface=\:\:1:backlog=4096"]),
        (
            "localhost:8080",
            ["tcp:8080:interface=127.0.0.1:backlog=4096", r"tcp6:8080:interface=\:\:1:backlog=4096"],
        ),
        ("unix:/run/llamaswap.sock:mode=660", ["unix:/run/llamaswap.sock:mode=660:backlog=4096"]),
        ("systemd:domain=INET:index=0", ["systemd:domain=INET:index=0"]),
        ("tcp:8080:interface=10.0.0.1:backlog=4096", ["tcp:8080:interface=10.0.0.1:backlog=4096"]),
        ("unix:/run/llamaswap.sock:backlog=9", ["unix:/run/llamaswap.sock:backlog=9"]),
        ("tcp:8080", ["tcp:8080:backlog=4096"]),
        ("ssl:443:privateKey=key.pem", ["ssl:443:privateKey=key.pem:backlog=4096"]),
    ],
)
def test_an_address_becomes_endpoints(address: str, descriptions: list[str]) -> None:
    assert list(endpoints_of(address, dual_stack=True)) == descriptions


@pytest.mark.parametrize(
    ("address", "descriptions"),
    [
        (":8080", ["tcp:8080:interface=0.0.0.0:backlog=4096"]),
        ("localhost:8080", ["tcp:8080:interface=127.0.0.1:backlog=4096"]),
    ],
)
def test_without_ipv6_there_is_only_ipv4(address: str, descriptions: list[str]) -> None:
    assert list(endpoints_of(address, dual_stack=False)) == descriptions


@pytest.mark.parametrize(
    "address",
    ["", "8080", "host", "host:", ":", "host:port", "host:65536", "host:-1", "host:80:90", "::1:8080", "http://h:80",
     "[::1]", "[::1]8080", "host:\uff18\uff10", "host:123456", "carrier:pigeon"],
)  # fmt: skip
def test_anything_else_is_a_mistake_that_is_quoted(address: str) -> None:
    with pytest.raises(BadAddress) as mistake:
        endpoints_of(address, dual_stack=True)

    assert repr(address) in str(mistake.value)
    assert "\n" not in str(mistake.value)
