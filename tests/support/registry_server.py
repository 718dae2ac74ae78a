"""ASGI applications on a free loopback port, stopped by their own handle."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import uvicorn
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)

_STOP_SECONDS = 10


@dataclass(frozen=True)
class Certificate:
    """A certificate, its own authority, as PEM files."""

    certificate: Path
    key: Path
    password: str | None = None


@contextmanager
def serving(
    application: Any, *, tls: Certificate | None = None, clients: Certificate | None = None
) -> Iterator[str]:
    """Run the application in a thread; gives its address. With `clients`, only those may come."""
    listening = socket.create_server(("127.0.0.1", 0))  # from here on, clients are queued
    port = listening.getsockname()[1]
    server = uvicorn.Server(
        uvicorn.Config(
            application,
            log_config=None,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=1,
            ssl_certfile=None if tls is None else str(tls.certificate),
            ssl_keyfile=None if tls is None else str(tls.key),
            ssl_ca_certs=None if clients is None else str(clients.certificate),
            ssl_cert_reqs=ssl.CERT_NONE if clients is None else ssl.CERT_REQUIRED,
        )
    )
    thread = threading.Thread(target=server.run, args=([listening],), name=f"server-{port}")
    thread.start()
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(_STOP_SECONDS)
        listening.close()
        if thread.is_alive():
            raise RuntimeError(f"the server on port {port} did not stop")


def make_certificate(folder: Path, name: str, *, password: str | None = None) -> Certificate:
    """A certificate for 127.0.0.1, valid for an hour, made on the spot."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, SHA256())
    )
    made = Certificate(folder / f"{name}.pem", folder / f"{name}.key", password)
    made.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
    made.key.write_bytes(
        key.private_bytes(
            Encoding.PEM,
            PrivateFormat.PKCS8,
            NoEncryption() if password is None else BestAvailableEncryption(password.encode()),
        )
    )
    return made
