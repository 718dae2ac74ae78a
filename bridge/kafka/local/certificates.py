"""Certificates for a broker that lives for an hour: an authority, and what it has signed.

Nothing but a local broker is to trust them. Keys are kept for their owner alone, unencrypted.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final

from duolog.errors import InvalidSetting

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

_VALID: Final = timedelta(days=825)  # the most that some systems take
_BEFORE: Final = timedelta(hours=1)  # for clocks that are behind


class Authority:
    """Makes certificates in a folder. A folder that has an authority keeps it."""

    def __init__(self, folder: Path, name: str = "Duolog local Kafka") -> None:
        try:
            import cryptography  # noqa: F401
        except ImportError:
            raise InvalidSetting(
                "A broker with TLS needs the package 'cryptography': pip install 'duolog[kafka]'."
            ) from None
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self.certificate_file = folder / "ca.pem"
        self._key_file = folder / "ca.key"
        if not self.certificate_file.exists():
            self._begin(name)
        self._key, self._certificate = self._read()

    def server(self, title: str, host_names: Sequence[str]) -> Path:
        """One file with the key and the certificate of a server of these names or addresses."""
        from cryptography import x509
        from cryptography.x509.oid import ExtendedKeyUsageOID

        file = self._folder / f"{title}.pem"
        if not file.exists():
            names = x509.SubjectAlternativeName([_general_name(name) for name in host_names])
            key, certificate = self._issue(title, names, ExtendedKeyUsageOID.SERVER_AUTH)
            _write(file, key + certificate)
        return file

    def client(self, user: str) -> tuple[Path, Path]:
        """The certificate of a client and its key, in two files. Kafka's name of it is CN=user."""
        from cryptography.x509.oid import ExtendedKeyUsageOID

        certificate_file, key_file = self._folder / f"{user}.pem", self._folder / f"{user}.key"
        if not certificate_file.exists():
            key, certificate = self._issue(user, None, ExtendedKeyUsageOID.CLIENT_AUTH)
            _write(key_file, key)
            _write(certificate_file, certificate)
        return certificate_file, key_file

    def _begin(self, name: str) -> None:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec

        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(name, name, key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        builder = builder.add_extension(identifier, critical=False)
        _write(self._key_file, _pem_of(key))
        _write(self.certificate_file, _signed(builder, key))

    def _read(self) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        key = load_pem_private_key(self._key_file.read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)  # noqa: S101 - written above
        return key, x509.load_pem_x509_certificate(self.certificate_file.read_bytes())

    def _issue(
        self, user: str, names: x509.SubjectAlternativeName | None, use: x509.ObjectIdentifier
    ) -> tuple[bytes, bytes]:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.x509.oid import NameOID

        (issuer,) = self._certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(user, str(issuer.value), key.public_key())
        builder = builder.add_extension(
            x509.BasicConstraints(ca=False, path_length=None), critical=True
        )
        builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        issued_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issued_by, critical=False)
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        return _pem_of(key), _signed(builder, self._key)


def _builder(user: str, issuer: str, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, user)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BEFORE)
        .not_valid_after(now + _VALID)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    from cryptography import x509

    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _signed(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding

    return builder.sign(key, SHA256()).public_bytes(Encoding.PEM)


def _pem_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    """As PKCS#8, which is what Kafka reads."""
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(file: Path, content: bytes) -> None:
    """For its owner alone, and whole or not at all."""
    new = file.with_suffix(f"{file.suffix}.new")
    new.unlink(missing_ok=True)
    new.touch(mode=0o600)
    new.write_bytes(content)
    new.replace(file)
