"""The TLS of a connection to a registry."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx

from duolog.avro.registry.connection_options import ConnectionOptions
from duolog.errors import InvalidSetting


def tls_context(options: ConnectionOptions) -> ssl.SSLContext:
    """Whom to trust, and what to show. Raises InvalidSetting for files that do not serve."""
    if options.ca_path is not None:
        context = _trusting(options.ca_path)
    elif any(url.startswith("https:") for url in options.urls):
        context = httpx.create_ssl_context()
    else:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody; loads no authorities
    if options.certificate_path is not None:
        # A function, because without one OpenSSL asks for the password on the terminal.
        password = "" if options.key_password is None else options.key_password.get_secret_value()
        try:
            context.load_cert_chain(options.certificate_path, options.key_path, lambda: password)
        except (OSError, ValueError) as error:
            raise InvalidSetting(
                "The certificate in ssl.certificate.location and its key cannot be used "
                f"({_reason(error)}). They must be PEM, belong together, and the key must open "
                "with ssl.key.password."
            ) from None
    return context


def _trusting(path: str) -> ssl.SSLContext:
    is_folder = Path(path).is_dir()
    try:
        return ssl.create_default_context(
            cafile=None if is_folder else path, capath=path if is_folder else None
        )
    except OSError as error:
        raise InvalidSetting(
            f"ssl.ca.location '{path}' cannot be used ({_reason(error)}). It must be a PEM file "
            "with certificates, or a folder of them as OpenSSL hashes it."
        ) from None


def untrusted(error: BaseException) -> str | None:
    """Why the certificate on the other side was not accepted, if that is what failed."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return str(cause.verify_message)
        cause = cause.__cause__ or cause.__context__
    return None


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or "not readable").replace("_", " ").lower()
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return "not readable"
