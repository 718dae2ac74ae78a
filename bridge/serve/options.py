"""How a host is run."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from duolog.bridge.http.pages import Origin
from duolog.bridge.http.rules import BodyLimits, TopicRules
from duolog.bridge.members.model import Rules as MemberRules
from duolog.bridge.metrics.bounds import MetricRules
from duolog.bridge.serve.connections import ConnectionRules
from duolog.bridge.sql.rules import SqlRules
from duolog.errors import InvalidSetting
from duolog.server.address import Address

DEFAULT_LISTEN: Final = "127.0.0.1:7070"


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files. With `client_authorities`, only clients with a certificate of theirs may come."""

    certificate: Path
    key: Path | None = None
    client_authorities: Path | None = None

    def check(self) -> None:
        """Refuse files that do not serve, before anything else is begun."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            # A function, because without one OpenSSL asks for the password on the terminal.
            context.load_cert_chain(self.certificate, self.key, lambda: "")
        except (OSError, ValueError) as error:
            raise InvalidSetting(
                f"The certificate {self.certificate} and its key cannot be used "
                f"({_reason(error)}). They must be PEM, belong together, and the key must have no "
                "password."
            ) from None
        if self.client_authorities is not None:
            try:
                context.load_verify_locations(self.client_authorities)
            except OSError as error:
                raise InvalidSetting(
                    f"The authorities in {self.client_authorities} cannot be used "
                    f"({_reason(error)}). It must be a PEM file with certificates."
                ) from None

    def server_options(self) -> dict[str, Any]:
        """As uvicorn takes them."""
        options: dict[str, Any] = {"ssl_certfile": str(self.certificate)}
        if self.key is not None:
            options["ssl_keyfile"] = str(self.key)
        if self.client_authorities is not None:
            options["ssl_ca_certs"] = str(self.client_authorities)
            options["ssl_cert_reqs"] = ssl.CERT_REQUIRED
        return options


@dataclass(frozen=True, slots=True)
class HostOptions:
    """Where a host listens, who may come, and what it does by itself."""

    listen: Address
    advertise: str | None = None  # where others on this machine reach it, if not where it listens
    tokens: Path | None = None
    tls: TlsFiles | None = None
    retention_every_seconds: float = 60.0
    topic_rules: TopicRules = field(default_factory=TopicRules)
    body_limits: BodyLimits = field(default_factory=BodyLimits)
    sql_rules: SqlRules = field(default_factory=SqlRules)
    connection_rules: ConnectionRules = field(default_factory=ConnectionRules)
    ready_when_degraded: bool = True  # whether /readyz is 200 where something is to be mended
    member_rules: MemberRules = field(default_factory=MemberRules)
    metric_rules: MetricRules = field(default_factory=MetricRules)
    group_retention_seconds: float = 7 * 24 * 3600.0  # 0: groups stay for ever
    trusted_proxies: tuple[str, ...] = ()  # that may say, in headers, for whom they ask
    max_schemas_bytes: int = 64 << 20  # of the log's own registry, in memory

    def __post_init__(self) -> None:
        if not 0 < self.retention_every_seconds < float("inf"):
            raise InvalidSetting(
                f"retention_every_seconds must be above 0; got {self.retention_every_seconds}."
            )
        if not 0 <= self.group_retention_seconds < float("inf"):
            raise InvalidSetting(
                "group_retention_seconds must be 0 (groups stay for ever) or more; got "
                f"{self.group_retention_seconds}."
            )
        for proxy in self.trusted_proxies:
            if not _is_network(proxy):
                raise InvalidSetting(
                    f"trust_proxy takes addresses like 10.0.0.7 or 10.0.0.0/8; got '{proxy}'."
                )
        if self.advertise is not None and not _is_url(self.advertise):
            raise InvalidSetting(
                f"advertise is a url like http://log-host:7070; got '{self.advertise}'."
            )

    def check(self) -> None:
        """Refuse what would be open to all, and files that do not serve."""
        if self.tokens is None and not self.listen.is_loopback:
            raise InvalidSetting(
                f"Listening on {self.listen.host}, beyond this machine, takes tokens. Make one "
                "with `duolog token create --role service --name NAME --file tokens` and give "
                "--tokens tokens."
            )
        if self.tls is not None:
            self.tls.check()

    def advertised_origin(self) -> Origin | None:
        """Where pages of its own come from, if it is advertised."""
        return None if self.advertise is None else Origin.of(self.advertise)

    def url(self, taken: Address) -> str:
        """Where to ask, on this machine, the host that took this address: in numbers, but where a
        certificate vouches for its name.
        """
        if self.advertise is not None:
            return self.advertise
        is_vouched_for = self.tls is not None and not self.listen.is_loopback
        host = self.listen.host if is_vouched_for else taken.host
        if taken.is_everywhere:
            host = "::1" if ":" in host else "127.0.0.1"
        return Address(host, taken.port).url(tls=self.tls is not None)


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and port != 0


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, ssl.SSLError):
        return (error.reason or "not readable").replace("_", " ").lower()
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return "not readable"
