"""How a broker lets clients in beside its plain listener: TLS, passwords, tokens, rules. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from duolog.bridge.kafka.local.properties import LOOPBACK
from duolog.errors import InvalidSetting

if TYPE_CHECKING:
    from pydantic import SecretStr

SSL: Final = "SSL"
SASL_PLAINTEXT: Final = "SASL_PLAINTEXT"
SASL_SSL: Final = "SASL_SSL"
PROTOCOLS: Final = (SSL, SASL_PLAINTEXT, SASL_SSL)

SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
BY_PASSWORD: Final = ("PLAIN", *SCRAM)
_TOKENS: Final = "OAUTHBEARER"
_OAUTH: Final = "org.apache.kafka.common.security.oauthbearer."
_MODULES: Final = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    _TOKENS: f"{_OAUTH}OAuthBearerLoginModule",
}


@dataclass(frozen=True, slots=True)
class Door:
    """A listener of its own: its name, and what it asks of those who come."""

    protocol: str
    name: str = ""  # as the protocol, if nothing else is said
    host_names: tuple[str, ...] = ("localhost", LOOPBACK)  # in its certificate
    wants_certificate: bool = False
    properties: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise InvalidSetting(
                f"A broker is secured by one of {', '.join(PROTOCOLS)}; got '{self.protocol}'."
            )

    @property
    def title(self) -> str:
        return self.name or self.protocol

    @property
    def has_tls(self) -> bool:
        return self.protocol != SASL_PLAINTEXT

    @property
    def has_sasl(self) -> bool:
        return self.protocol != SSL


@dataclass(frozen=True, slots=True)
class Security:
    """All doors of a broker, who is known there, and whether Kafka's access rules hold.

    `users` come in by password, PLAIN or SCRAM. `jwks` is a file with the public keys of those who
    may issue tokens for OAUTHBEARER: signatures are checked. With `guarded`, who comes through a
    door may do what Kafka's rules (ACLs) allow, which can be changed at any time; the plain
    listener may do everything, also change them.
    """

    doors: tuple[Door, ...]
    users: Mapping[str, SecretStr] = field(default_factory=dict)
    jwks: Path | None = None
    audience: str = "kafka"  # whom tokens are for
    guarded: bool = False

    def __post_init__(self) -> None:
        for text in (*self.users, *(word.get_secret_value() for word in self.users.values())):
            if not text.isascii() or not text.isprintable() or set(text) & set("\"'\\,=[]@ ;"):
                raise InvalidSetting(
                    "Users and passwords of a local broker are of ASCII letters, digits and marks "
                    "other than quotes, backslashes, commas, semicolons, brackets, = and @."
                )
        if any(door.has_sasl for door in self.doors) and not (self.users or self.jwks):
            raise InvalidSetting("Nobody could come in by SASL: give users or jwks.")

    def properties(self, certificates: Mapping[str, Path], ca: Path | None) -> dict[str, str]:
        """For the broker. `certificates`: by door, its own with its key."""
        told: dict[str, str] = {}
        for door in self.doors:
            prefix = f"listener.name.{door.title.lower()}."
            if door.has_tls:
                told |= {
                    f"{prefix}ssl.keystore.type": "PEM",
                    f"{prefix}ssl.keystore.location": str(certificates[door.title]),
                    f"{prefix}ssl.truststore.type": "PEM",
                    f"{prefix}ssl.truststore.location": str(ca),
                    f"{prefix}ssl.client.auth": "required" if door.wants_certificate else "none",
                }
            if door.has_sasl:
                told |= self._sasl(prefix)
            told |= {f"{prefix}{name}": value for name, value in door.properties.items()}
        if self.guarded:
            told |= {
                "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
                "super.users": "User:ANONYMOUS",  # the plain listener: the broker itself, too
            }
        return told

    @property
    def java_options(self) -> tuple[str, ...]:
        if self.jwks is None:
            return ()
        return (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.jwks.as_uri()}",)

    def scram_arguments(self) -> list[str]:
        """For Kafka's formatting tool; hidden from lists of processes by the caller."""
        return [
            f"--add-scram={kind}=[name={user},password={password.get_secret_value()}]"
            for user, password in self.users.items()
            for kind in SCRAM
        ]

    def _sasl(self, prefix: str) -> dict[str, str]:
        kinds = (*(BY_PASSWORD if self.users else ()), *((_TOKENS,) if self.jwks else ()))
        told = {f"{prefix}sasl.enabled.mechanisms": ",".join(kinds)}
        for kind in kinds:
            known = "".join(
                f' user_{user}="{password.get_secret_value()}"'
                for user, password in (self.users.items() if kind == "PLAIN" else ())
            )
            told[f"{prefix}{kind.lower()}.sasl.jaas.config"] = f"{_MODULES[kind]} required{known};"
        if self.jwks is not None:
            told |= {
                f"{prefix}{_TOKENS.lower()}.sasl.server.callback.handler.class": (
                    f"{_OAUTH}OAuthBearerValidatorCallbackHandler"
                ),
                # Named, and not by mechanism: Kafka 4.1 would check no signature otherwise.
                f"{prefix}sasl.oauthbearer.jwt.validator.class": f"{_OAUTH}BrokerJwtValidator",
                f"{prefix}sasl.oauthbearer.jwks.endpoint.url": self.jwks.as_uri(),
                f"{prefix}sasl.oauthbearer.expected.audience": self.audience,
            }
        return told
