"""Who reaches a host and its log: what its operator may not have meant, told once at the start."""

from __future__ import annotations

from pathlib import Path

from duolog.bridge.http.doorkeeper import Doorkeeper
from duolog.bridge.journal import Journal
from duolog.bridge.serve.options import HostOptions
from duolog.log.owner import open_to_others


def tell_of_exposure(options: HostOptions, doorkeeper: Doorkeeper, journal: Journal) -> None:
    """Warn of tokens that travel unencrypted, and of a host that lets nobody in."""
    if not options.listen.is_loopback and not _is_encrypted(options):
        journal.warn(
            "host.without_tls",
            listen=options.listen.host,
            said="Tokens and records travel unencrypted beyond this machine. Set tls_certificate "
            "and tls_key in [serve] (--tls-certificate, --tls-key), or have a proxy encrypt, and "
            "say so by --advertise https://…",
        )
    if doorkeeper.wants_tokens and not doorkeeper.in_force():
        journal.warn(
            "host.without_any_token",
            tokens=options.tokens,
            said="No token is in force, so nobody is let in who cannot read the log's folder. "
            "Make one with: duolog token create --role service --name NAME --file "
            f"{options.tokens}",
        )


def warn_of_open_folder(folder: Path, journal: Journal) -> None:
    """Where the log's folder is another user's, so that opening it could not close it to others."""
    exposed = open_to_others(folder)
    if exposed is not None:
        journal.warn(
            "log.open_to_others", log=str(folder), said=f"{exposed.found}. {exposed.advice}"
        )


def _is_encrypted(options: HostOptions) -> bool:
    origin = options.advertised_origin()
    return options.tls is not None or (origin is not None and origin.scheme == "https")
