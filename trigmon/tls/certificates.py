"""A private authority and the certificates that it signs (extra ``tls``): keys of the curve P-256."""

from __future__ import annotations

import datetime
import ipaddress
import os
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from trigmon.tls.contexts import TlsFileError

if find_spec("cryptography") is None:
    raise ImportError("certificates need the package cryptography: pip install 'trigmon[tls]'")

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes

AUTHORITY_DAYS, CERTIFICATE_DAYS = 3650, 397
_EARLIER = datetime.timedelta(minutes=5)  # for clocks that are a little behind
_LONGEST_NAME, _LONGEST_HOST = 64, 253
_LABEL = r"[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_HOST = re.compile(rf"(\*\.)?{_LABEL}(\.{_LABEL})*")
_CURVE = ec.SECP256R1()


class Pair(NamedTuple):
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: CertificateIssuerPrivateKeyTypes

    @property
    def der(self) -> bytes:
        """The certificate as DER."""
        return self.certificate.public_bytes(serialization.Encoding.DER)

    def save(self, certificate: Path, key: Path) -> None:
        """Writes both as PEM; the key for its owner alone. Raises FileExistsError rather than write over one."""
        _save(key, _pem(self.key), 0o600)
        _save(certificate, self.certificate.public_bytes(serialization.Encoding.PEM), 0o644)


def make_authority(name: str, now: datetime.datetime, days: int = AUTHORITY_DAYS) -> Pair:
    """Returns a new authority, which signs certificates and no further authorities."""
    key = ec.generate_private_key(_CURVE)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    usage = _usage(certificates=True)
    builder = _builder(subject, subject, key.public_key(), now, days)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return Pair(builder.add_extension(usage, critical=True).sign(key, hashes.SHA256()), key)


def make_certificate(
    authority: Pair, name: str, hosts: Sequence[str], now: datetime.datetime, days: int = CERTIFICATE_DAYS
) -> Pair:
    """Returns a certificate for a server of these hosts (names or addresses), or without hosts for a client.

    Raises TlsFileError for what is no host.
    """
    alternatives = [_host(host) for host in hosts]
    key = ec.generate_private_key(_CURVE)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:_LONGEST_NAME])])
    purpose = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
    builder = _builder(subject, authority.certificate.subject, key.public_key(), now, days)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(certificates=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(_public(authority.key))
    builder = builder.add_extension(issuer, critical=False)
    if hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return Pair(builder.sign(authority.key, hashes.SHA256()), key)


def load(certificate: Path, key: Path) -> Pair:
    """Returns a certificate and its key from their files. Raises TlsFileError."""
    try:
        private = serialization.load_pem_private_key(key.read_bytes(), None)
        return Pair(x509.load_pem_x509_certificate(certificate.read_bytes()), private)  # type: ignore[arg-type]
    except OSError as error:
        raise TlsFileError(f"{error.filename}: {error.strerror}") from None
    except (ValueError, TypeError) as error:
        raise TlsFileError(f"{certificate} and {key}: {error}") from None


def not_after(certificate: Path) -> datetime.datetime:
    """Returns until when the first certificate of a file is valid. Raises TlsFileError."""
    try:
        return x509.load_pem_x509_certificate(certificate.read_bytes()).not_valid_after_utc
    except OSError as error:
        raise TlsFileError(f"{certificate}: {error.strerror}") from None
    except ValueError as error:
        raise TlsFileError(f"{certificate}: {error}") from None


def is_authority(der: bytes) -> bool:
    """Returns whether a certificate may sign others (CA:TRUE), or has extensions that cannot be read."""
    try:
        found = x509.load_der_x509_certificate(der).extensions.get_extension_for_class(x509.BasicConstraints)
    except x509.ExtensionNotFound:
        return False
    except (ValueError, x509.DuplicateExtension, x509.InvalidVersion, x509.UnsupportedGeneralNameType):
        return True
    return found.value.ca


def hosts(certificate: Path) -> tuple[str, ...]:
    """Returns the names and addresses of a server's certificate. Raises TlsFileError."""
    try:
        found = x509.load_pem_x509_certificate(certificate.read_bytes())
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except OSError as error:
        raise TlsFileError(f"{certificate}: {error.strerror}") from None
    except (ValueError, x509.ExtensionNotFound) as error:
        raise TlsFileError(f"{certificate}: {error}") from None
    return tuple(str(name.value) for name in names)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime.datetime, days: int
) -> x509.CertificateBuilder:
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number())
    builder = builder.not_valid_before(now - _EARLIER).not_valid_after(now + datetime.timedelta(days=days))
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def _usage(*, certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=certificates,
        crl_sign=certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _public(key: CertificateIssuerPrivateKeyTypes) -> ec.EllipticCurvePublicKey:
    return key.public_key()  # type: ignore[return-value]


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        if len(host) > _LONGEST_HOST or not _HOST.fullmatch(host):
            raise TlsFileError(
                f"{host!r} is neither a host's name nor an address: --host mq1.example.com, --host 10.0.0.5; a name "
                "with other letters as DNS has it, xn--..."
            ) from None
        return x509.DNSName(host)


def _pem(key: CertificateIssuerPrivateKeyTypes) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _save(path: Path, content: bytes, mode: int) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(handle, mode)
        file.write(content)
