"""TLS as the settings want it, for Python's side; librdkafka reads the same settings itself."""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Mapping
from pathlib import Path

from duolog.errors import InvalidSetting


def tls_context(given: Mapping[str, str], *, ca_file: str = "ssl.ca.location") -> ssl.SSLContext:
    """From all settings, the secret ones among them. Raises InvalidSetting for unfit files."""
    try:
        context = ssl.create_default_context(
            cafile=given[ca_file] or None, cadata=given["ssl.ca.pem"] or None
        )
        _check_less(context, given)
        if given["ssl.crl.location"]:
            context.load_verify_locations(given["ssl.crl.location"])
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        if given["ssl.cipher.suites"]:
            context.set_ciphers(given["ssl.cipher.suites"])
        _show_certificate(context, given)
    except (OSError, ValueError) as error:
        raise InvalidSetting(
            f"The certificates for Kafka cannot be used: {error}. ssl.ca.location, "
            "ssl.certificate.location and ssl.key.location are PEM files that belong together, "
            "ssl.key.password opens the key; ssl.ca.pem, ssl.certificate.pem and ssl.key.pem hold "
            "the same as text, and ssl.cipher.suites is a list as OpenSSL writes it."
        ) from None
    return context


def _check_less(context: ssl.SSLContext, given: Mapping[str, str]) -> None:
    if given["ssl.endpoint.identification.algorithm"] == "none":
        context.check_hostname = False
    if given["enable.ssl.certificate.verification"] == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE


def _show_certificate(context: ssl.SSLContext, given: Mapping[str, str]) -> None:
    password = given["ssl.key.password"]
    certificate_pem = given["ssl.certificate.pem"]
    if certificate_pem:
        # Python reads them from files alone: one for its owner, which is gone at once.
        with tempfile.TemporaryDirectory(prefix="duolog-") as folder:
            file = Path(folder) / "client.pem"
            file.touch(mode=0o600)
            file.write_text(f"{given['ssl.key.pem']}\n{certificate_pem}\n")
            context.load_cert_chain(file, None, lambda: password)
    elif given["ssl.certificate.location"]:
        key = given["ssl.key.location"] or None
        context.load_cert_chain(given["ssl.certificate.location"], key, lambda: password)
