"""Listening with TLS: a certificate and its key, put into endpoint descriptions.

Knows what Twisted's `ssl` endpoint needs; what an address may look like is
`llamaswap.listening`'s part.  Only `read_pair` looks at the files.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from twisted.internet.endpoints import quoteStringArgument

from llamaswap.listening import BadAddress

DEFAULT_ADDRESS = "127.0.0.1:8443"

# As Twisted looks for them when it reads a chain.
_BEGINS = b"-----BEGIN CERTIFICATE-----\n"


class BadCertificate(ValueError):
    """The certificate or its key cannot be used: one line that says why."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The files of a certificate and of its key."""

    certificate: str
    key: str
    chained: bool = False  # other certificates follow the server's own in the same file


def pair_of(certificate: str | None, key: str | None) -> Pair | None:
    """Return the pair that two flags name, None when neither is given.

    Raises:
        BadCertificate: only one is given.
    """
    if certificate and key:
        return Pair(certificate, key)
    if certificate or key:
        raise BadCertificate("TLS needs both --tls-cert-file and --tls-key-file")
    return None


def read_pair(pair: Pair) -> Pair:
    """Look into the files, so that a mistake in them is found before anything is started.

    Returns:
        The pair, with `chained` as the file has it.

    Raises:
        BadCertificate: a file cannot be read or understood, the key wants a
            password, or belongs to another certificate.
    """
    chain, secret = _read(pair.certificate), _read(pair.key)
    try:
        certificates = x509.load_pem_x509_certificates(chain)
    except ValueError as error:
        raise BadCertificate(f"{pair.certificate}: not a PEM certificate") from error
    try:
        key = load_pem_private_key(secret, password=None)
    except TypeError as error:
        raise BadCertificate(f"{pair.key}: the key is protected by a password") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise BadCertificate(f"{pair.key}: not a PEM private key") from error
    if key.public_key() != certificates[0].public_key():
        raise BadCertificate(f"{pair.key}: not the key of {pair.certificate}")
    return replace(pair, chained=chain.count(_BEGINS) > 1)


def with_tls(description: str, pair: Pair) -> str:
    """Return the TLS endpoint in the place of a plain TCP one.

    Args:
        description: what `llamaswap.listening.endpoints_of` returns for an address.

    Raises:
        BadAddress: it is no TCP endpoint, so TLS cannot be put on it from here.
    """
    kind, _, place = description.partition(":")
    if kind not in ("tcp", "tcp6"):
        raise BadAddress(f"{description!r}: --tls-cert-file goes with host:port, tcp: and tcp6: only")
    if kind == "tcp6" and "interface=" not in place:
        place += r":interface=\:\:"
    parts = ["ssl", place, f"privateKey={_quoted(pair.key)}", f"certKey={_quoted(pair.certificate)}"]
    if pair.chained:
        # The server's own certificate goes out twice then, which clients are used to ignore.
        parts.append(f"extraCertChain={_quoted(pair.certificate)}")
    return ":".join(parts)


def _quoted(path: str) -> str:
    quoted: str = quoteStringArgument(path)
    return quoted


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BadCertificate(f"{path}: {error.strerror}") from error
