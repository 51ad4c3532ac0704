"""Listening with TLS: a certificate and its key, put into endpoint descriptions.

Knows what Twisted's `ssl` endpoint needs; what an address may look like is
`llamaswap.listening`'s part.  Only `read_pair` looks at the files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from twisted.internet.endpoints import quoteStringArgument

from llamaswap.listening import BadAddress

DEFAULT_ADDRESS = "127.0.0.1:8443"

# As Twisted looks for them when it reads a chain; what looks different would not be sent.
_IN_A_CHAIN = re.compile(rb"-----BEGIN CERTIFICATE-----\n.+?\n-----END CERTIFICATE-----", re.DOTALL)


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
            password, or belongs to another certificate, or OpenSSL takes them
            for too weak.
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
    if len(certificates) > 1 and (
        len(_IN_A_CHAIN.findall(chain)) != len(certificates) or not chain.isascii()
    ):
        raise BadCertificate(
            f"{pair.certificate}: a file with a chain must be ASCII, its lines ended by line feeds alone"
        )
    _try(pair)
    return replace(pair, chained=len(certificates) > 1)


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


def _try(pair: Pair) -> None:
    """Give both files to OpenSSL, which has more to say than whether they fit."""
    from OpenSSL import SSL  # takes a while to import, and only TLS wants it

    context = SSL.Context(SSL.TLS_METHOD)
    try:
        context.use_certificate_chain_file(pair.certificate)
        context.use_privatekey_file(pair.key)
    except SSL.Error as error:
        why = error.args[0][-1][-1] if error.args and error.args[0] else "OpenSSL does not take it"
        raise BadCertificate(f"{pair.certificate}: {why}") from error


def _quoted(path: str) -> str:
    quoted: str = quoteStringArgument(path)
    return quoted


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise BadCertificate(f"{path}: {error.strerror}") from error
