"""Certificates in endpoint descriptions."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption

from llamaswap.listening import BadAddress, endpoints_of
from llamaswap.tls import DEFAULT_ADDRESS, BadCertificate, Pair, pair_of, read_pair, with_tls
from support.tls_certificates import Issued, issue, pem_of_key

PAIR = Pair("/etc/cert.pem", "/etc/key.pem")
FILES = "privateKey=/etc/key.pem:certKey=/etc/cert.pem"


def write(folder: Path, issued: Issued) -> Pair:
    (folder / "cert.pem").write_bytes(issued.pem)
    (folder / "key.pem").write_bytes(pem_of_key(issued.key))
    return Pair(str(folder / "cert.pem"), str(folder / "key.pem"))


def test_both_files_are_needed_or_neither() -> None:
    assert pair_of(None, None) is None
    assert pair_of("", "") is None
    assert pair_of("c", "k") == Pair("c", "k")
    for only in (("c", None), (None, "k"), ("", "k")):
        with pytest.raises(BadCertificate):
            pair_of(*only)


@pytest.mark.parametrize(
    ("plain", "secured"),
    [
        ("tcp:8443:interface=127.0.0.1", f"ssl:8443:interface=127.0.0.1:{FILES}"),
        (r"tcp6:8443:interface=\:\:1", rf"ssl:8443:interface=\:\:1:{FILES}"),
        ("tcp6:8443", rf"ssl:8443:interface=\:\::{FILES}"),
        ("tcp:8443", f"ssl:8443:{FILES}"),
    ],
)
def test_a_tcp_endpoint_becomes_one_with_tls(plain: str, secured: str) -> None:
    assert with_tls(plain, PAIR) == secured


@pytest.mark.parametrize("dual_stack", [True, False])
def test_the_default_address_is_the_loopback_on_8443(dual_stack: bool) -> None:
    (plain,) = endpoints_of(DEFAULT_ADDRESS, dual_stack=dual_stack)

    assert with_tls(plain, PAIR).startswith("ssl:8443:interface=127.0.0.1:")


@pytest.mark.parametrize("other", ["unix:/run/x", "systemd:domain=INET:index=0", "ssl:443", "fd:3"])
def test_other_endpoints_say_themselves_what_they_carry(other: str) -> None:
    with pytest.raises(BadAddress):
        with_tls(other, PAIR)


def test_a_colon_in_a_file_name_stays_in_it() -> None:
    secured = with_tls("tcp:1", Pair("/a:b/c=d.pem", "/k\\.pem"))

    assert secured == r"ssl:1:privateKey=/k\\.pem:certKey=/a\:b/c=d.pem"


def test_a_chain_is_sent_along() -> None:
    secured = with_tls("tcp:1", Pair("/c", "/k", chained=True))

    assert secured.endswith(":certKey=/c:extraCertChain=/c")


def test_good_files_pass_and_a_chain_is_noticed(tmp_path: Path) -> None:
    authority = issue("authority", authority=True)
    single = write(tmp_path, issue("localhost", by=authority))
    assert read_pair(single) == single

    with Path(single.certificate).open("ab") as file:
        file.write(authority.pem)
    assert read_pair(single).chained


@pytest.mark.parametrize("spoilt", [(b"\n", b"\r\n"), (b"-----BEGIN", "Müller\n-----BEGIN".encode())])
def test_a_chain_that_would_not_be_sent_along_whole_is_refused(
    tmp_path: Path, spoilt: tuple[bytes, bytes]
) -> None:
    authority = issue("authority", authority=True)
    pair = write(tmp_path, issue("localhost", by=authority))
    whole = Path(pair.certificate).read_bytes() + authority.pem
    Path(pair.certificate).write_bytes(whole.replace(*spoilt))

    with pytest.raises(BadCertificate, match=r"cert\.pem: a file with a chain must be ASCII"):
        read_pair(pair)


def test_what_openssl_would_refuse_at_each_connection_is_refused_at_the_start(tmp_path: Path) -> None:
    weak = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    issued = issue("localhost", key=weak)

    with pytest.raises(BadCertificate, match=r"cert\.pem: ee key too small"):
        read_pair(write(tmp_path, issued))


def test_both_may_be_in_one_file(tmp_path: Path) -> None:
    pair = write(tmp_path, issue("localhost"))
    with Path(pair.key).open("ab") as file:
        file.write(Path(pair.certificate).read_bytes())
    both = Pair(pair.key, pair.key)

    assert read_pair(both) == both


def test_a_key_of_another_certificate_is_refused(tmp_path: Path) -> None:
    pair = write(tmp_path, issue("localhost"))
    Path(pair.key).write_bytes(pem_of_key(issue("other").key))

    with pytest.raises(BadCertificate, match="not the key of"):
        read_pair(pair)


def test_a_key_with_a_password_is_refused_instead_of_asked_for(tmp_path: Path) -> None:
    issued = issue("localhost")
    pair = write(tmp_path, issued)
    Path(pair.key).write_bytes(pem_of_key(issued.key, BestAvailableEncryption(b"secret")))

    with pytest.raises(BadCertificate, match="password"):
        read_pair(pair)


@pytest.mark.parametrize("which", ["cert.pem", "key.pem"])
def test_a_file_that_is_no_pem_or_not_there_is_named(tmp_path: Path, which: str) -> None:
    pair = write(tmp_path, issue("localhost"))
    (tmp_path / which).write_text("nothing\n")
    with pytest.raises(BadCertificate, match=f"{which}: not a PEM"):
        read_pair(pair)

    (tmp_path / which).unlink()
    with pytest.raises(BadCertificate, match=f"{which}: No such file"):
        read_pair(pair)
