"""How a Kafka cluster is reached: Kafka's own names for settings, checked and passed on."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from pydantic import SecretStr

from duolog.bridge.kafka.setting_names import (
    ALGORITHMS,
    ALSO_NAMED,
    CONNECTION,
    FIXED,
    MECHANISMS,
    METHODS,
    MIRROR,
    NUMBERS,
    OAUTHBEARER,
    OURS,
    PASSWORD_MECHANISMS,
    PROTOCOLS,
    SECRETS,
    TOPIC_PREFIX,
    canonical,
)
from duolog.bridge.kafka.tls import tls_context
from duolog.bridge.kafka.tokens import OidcServer, TokenSource, provider_of
from duolog.bridge.kafka.wire.compression import Compression
from duolog.errors import InvalidSetting


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """A cluster and how to come to it. Passwords are never shown."""

    bootstrap_servers: str
    connection: Mapping[str, str]
    secrets: Mapping[str, SecretStr] = field(default_factory=dict)
    compression: Compression = Compression.ZSTD
    replication_factor: int = -1  # the broker's own
    topic_settings: Mapping[str, str] = field(default_factory=dict)
    tokens: TokenSource | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, bootstrap_servers: str, settings: Mapping[str, str] | None = None) -> Self:
        """Checked settings, by Kafka's names; `topic.NAME` is a setting of topics that are made."""
        _check_servers(bootstrap_servers)
        connection, mirror = dict(CONNECTION), dict(MIRROR)
        topic: dict[str, str] = {}
        for given, value in (settings or {}).items():
            name = canonical(given)
            if name in connection:
                connection[name] = value
            elif name in mirror:
                mirror[name] = value
            elif name.startswith(TOPIC_PREFIX):
                topic[name.removeprefix(TOPIC_PREFIX)] = value
            else:
                _refuse(name, value)
        _check_words(connection)
        _check_word("compression.type", mirror["compression.type"], tuple(Compression))
        for name, least in NUMBERS.items():
            _number(name, connection[name], least)
        _check_in_use(connection)
        _check_login(connection)
        secrets = {name: SecretStr(connection.pop(name)) for name in sorted(SECRETS)}
        return cls(
            bootstrap_servers,
            connection,
            secrets,
            Compression(mirror["compression.type"]),
            _number("replication.factor", mirror["replication.factor"], -1, but_not=0),
            topic,
            _token_source(connection, secrets),
        )

    @property
    def request_timeout_seconds(self) -> float:
        return int(self.connection["request.timeout.ms"]) / 1000

    @property
    def setup_timeout_seconds(self) -> float:
        """For a connection, TLS and login included."""
        return int(self.connection["socket.connection.setup.timeout.ms"]) / 1000

    def for_confluent(self) -> dict[str, Any]:
        """As librdkafka takes it: with the passwords. Make clients by `access.client_of`."""
        given = {name: value for name, value in self._all.items() if value}
        given.pop("request.timeout.ms")
        for name in CONNECTION:
            is_unused = (
                (name.startswith("sasl.") and not self._uses_sasl)
                or (name.startswith(_TLS) and not self._uses_tls)
                or name.startswith(_NOT_LIBRDKAFKAS)
            )
            if is_unused:
                given.pop(name, None)
        options: dict[str, Any] = {"bootstrap.servers": self.bootstrap_servers, **given}
        if self.tokens is not None:
            from duolog.bridge.kafka.tokens.clients import ForLibrdkafka

            options["oauth_cb"] = ForLibrdkafka(self.tokens, self._extensions)
        return options

    def for_aiokafka(self) -> dict[str, Any]:
        """As aiokafka's connections take it: with the passwords."""
        connection = self._all
        given: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap_servers.split(","),
            "client_id": connection["client.id"],
            "request_timeout_ms": int(connection["request.timeout.ms"]),
            "security_protocol": connection["security.protocol"],
        }
        if int(connection["connections.max.idle.ms"]):
            given["max_idle_ms"] = int(connection["connections.max.idle.ms"])
        if self._uses_sasl:
            given["sasl_mechanism"] = connection["sasl.mechanism"]
            if self.tokens is not None:
                from duolog.bridge.kafka.tokens.clients import ForAiokafka

                given["sasl_oauth_token_provider"] = ForAiokafka(self.tokens, self._extensions)
            else:
                given["sasl_plain_username"] = connection["sasl.username"]
                given["sasl_plain_password"] = connection["sasl.password"]
        if self._uses_tls:
            given["ssl_context"] = tls_context(connection)
        return given

    @property
    def _all(self) -> dict[str, str]:
        return {
            **self.connection,
            **{name: secret.get_secret_value() for name, secret in self.secrets.items()},
        }

    @property
    def _uses_sasl(self) -> bool:
        return self.connection["security.protocol"].startswith("SASL_")

    @property
    def _uses_tls(self) -> bool:
        return self.connection["security.protocol"].endswith("SSL")

    @property
    def _extensions(self) -> dict[str, str]:
        return _pairs(self.connection[_EXTENSIONS])


_EXTENSIONS: Final = "sasl.oauthbearer.extensions"
_TLS: Final = ("ssl.", "enable.ssl.")
_NOT_LIBRDKAFKAS: Final = ("sasl.oauthbearer.", "https.")  # tokens come from us


def _token_source(
    connection: Mapping[str, str], secrets: Mapping[str, SecretStr]
) -> TokenSource | None:
    uses_tokens = connection["security.protocol"].startswith("SASL_") and (
        connection["sasl.mechanism"] == OAUTHBEARER
    )
    if not uses_tokens:
        return None
    named = connection["sasl.oauthbearer.token.provider"]
    if named:
        return TokenSource(provider_of(named), named, secrets=secrets.values())
    server = OidcServer(
        connection["sasl.oauthbearer.token.endpoint.url"],
        connection["sasl.oauthbearer.client.id"],
        secrets["sasl.oauthbearer.client.secret"],
        connection["sasl.oauthbearer.scope"],
        connection["https.ca.location"],
    )
    return TokenSource(server, server.url, secrets=secrets.values())


def _check_words(connection: Mapping[str, str]) -> None:
    for name, known in (
        ("security.protocol", PROTOCOLS),
        ("sasl.mechanism", MECHANISMS),
        ("sasl.oauthbearer.method", METHODS),
        ("ssl.endpoint.identification.algorithm", ALGORITHMS),
        ("enable.ssl.certificate.verification", ("true", "false")),
    ):
        _check_word(name, connection[name], known)


def _check_in_use(connection: Mapping[str, str]) -> None:
    """Nothing that somebody relies on is left unused in silence."""
    protocol = connection["security.protocol"]
    for part, prefixes, kept in (
        ("SASL_", ("sasl.",), "SASL_SSL or SASL_PLAINTEXT"),
        ("SSL", _TLS, "SSL or SASL_SSL"),
    ):
        if protocol.startswith(part) if part == "SASL_" else protocol.endswith(part):
            continue
        for name, value in connection.items():
            if name.startswith(prefixes) and value != CONNECTION[name]:
                raise InvalidSetting(
                    f"{name} is given, and security.protocol={protocol} makes no use of it. Set "
                    f"security.protocol={kept}, or leave {name} out."
                )


def _check_login(connection: Mapping[str, str]) -> None:
    """Whoever logs in says who they are."""
    if not connection["security.protocol"].startswith("SASL_"):
        return
    mechanism = connection["sasl.mechanism"]
    if mechanism in PASSWORD_MECHANISMS:
        needed, by = ["sasl.username", "sasl.password"], f"sasl.mechanism={mechanism}"
    elif connection["sasl.oauthbearer.token.provider"]:
        needed, by = [], ""
    elif connection["sasl.oauthbearer.method"] == "oidc":
        needed = [f"sasl.oauthbearer.{name}" for name in _OIDC_NEEDS]
        by = "sasl.oauthbearer.method=oidc"
    else:
        raise InvalidSetting(
            f"sasl.mechanism={OAUTHBEARER} takes tokens from somewhere: set "
            "sasl.oauthbearer.token.provider=module:function, or sasl.oauthbearer.method=oidc."
        )
    missing = [name for name in needed if not connection[name]]
    if missing:
        raise InvalidSetting(f"{by} needs {' and '.join(missing)}.")
    _pairs(connection[_EXTENSIONS])


_OIDC_NEEDS: Final = ("token.endpoint.url", "client.id", "client.secret")


def _pairs(text: str) -> dict[str, str]:
    """`a=1,b=2`"""
    pairs = [pair.partition("=") for pair in text.split(",") if pair.strip()]
    if not all(name.strip().isalpha() and equals for name, equals, _ in pairs):
        raise InvalidSetting(f"{_EXTENSIONS} is written name=value, several with commas.")
    return {name.strip(): value.strip() for name, _, value in pairs}


def _refuse(name: str, value: str) -> None:
    if name in FIXED:
        if value.lower() not in FIXED[name]:
            raise InvalidSetting(
                f"{name}={value} would lose or repeat records: the mirror needs "
                f"{name}={FIXED[name][0]}, which it has by itself. Leave it out."
            )
        return
    if name in OURS:
        raise InvalidSetting(f"{name} cannot be set. {OURS[name]}")
    known = [*CONNECTION, *MIRROR, *ALSO_NAMED]
    near = difflib.get_close_matches(name, known, 1)
    hint = f" Did you mean {near[0]}?" if near else f" There are: {', '.join(known)}."
    raise InvalidSetting(f"The mirror knows no Kafka setting '{name}'.{hint}")


def _check_servers(bootstrap_servers: str) -> None:
    for server in bootstrap_servers.split(","):
        host, colon, port = server.strip().rpartition(":")
        if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise InvalidSetting(
                f"Bootstrap servers are host:port, several with commas between; got '{server}'."
            )


def _check_word(name: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InvalidSetting(f"{name} is one of {', '.join(known)}; got '{value}'.")


def _number(name: str, value: str, least: int, *, but_not: int | None = None) -> int:
    try:
        number = int(value)
    except ValueError:
        number = least - 1
    if number < least or number == but_not:
        above = "above 0" if least < 2 and least else f"of {least} or more"
        raise InvalidSetting(f"{name} is a whole number {above}; got '{value}'.")
    return number
