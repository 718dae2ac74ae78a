"""How a Kafka cluster is reached: Kafka's own names for settings, checked and passed on."""

from __future__ import annotations

import difflib
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from pydantic import SecretStr

from duolog.bridge.kafka.wire.compression import Compression
from duolog.errors import InvalidSetting

_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
SECRETS: Final = frozenset({"sasl.password", "ssl.key.password"})
_CONNECTION: Final = {
    "client.id": "duolog",
    "security.protocol": "PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "",
    "sasl.password": "",
    "ssl.ca.location": "",
    "ssl.certificate.location": "",
    "ssl.key.location": "",
    "ssl.key.password": "",
    "ssl.endpoint.identification.algorithm": "https",
    "request.timeout.ms": "30000",
}
_MIRROR: Final = {"compression.type": "zstd", "replication.factor": "-1"}
_TOPIC_PREFIX: Final = "topic."
_ALSO_NAMED: Final = {"sasl.mechanisms": "sasl.mechanism"}
_FIXED: Final = {  # other values would break what is promised
    "acks": ("all", "-1"),
    "request.required.acks": ("all", "-1"),
    "enable.idempotence": ("true",),
}
_OURS: Final = {
    "transactional.id": "The mirror is exactly once by its sequence numbers; leave it out.",
    "partitioner": "A record's partition is the log's; leave it out.",
    "bootstrap.servers": "Give it as --bootstrap-servers.",
}


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """A cluster and how to come to it. Passwords are never shown."""

    bootstrap_servers: str
    connection: Mapping[str, str]
    secrets: Mapping[str, SecretStr] = field(default_factory=dict)
    compression: Compression = Compression.ZSTD
    replication_factor: int = -1  # the broker's own
    topic_settings: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, bootstrap_servers: str, settings: Mapping[str, str] | None = None) -> Self:
        """Checked settings, by Kafka's names; `topic.NAME` is a setting of topics that are made."""
        _check_servers(bootstrap_servers)
        connection, mirror = dict(_CONNECTION), dict(_MIRROR)
        topic: dict[str, str] = {}
        for given, value in (settings or {}).items():
            name = _ALSO_NAMED.get(given, given)
            if name in connection:
                connection[name] = value
            elif name in mirror:
                mirror[name] = value
            elif name.startswith(_TOPIC_PREFIX):
                topic[name.removeprefix(_TOPIC_PREFIX)] = value
            else:
                _refuse(name, value)
        _check_word("security.protocol", connection["security.protocol"], _PROTOCOLS)
        _check_word("sasl.mechanism", connection["sasl.mechanism"], _MECHANISMS)
        _check_word("compression.type", mirror["compression.type"], tuple(Compression))
        algorithm = connection["ssl.endpoint.identification.algorithm"]
        _check_word("ssl.endpoint.identification.algorithm", algorithm, ("https", "none"))
        _number("request.timeout.ms", connection["request.timeout.ms"], 1)
        secrets = {name: SecretStr(connection.pop(name)) for name in sorted(SECRETS)}
        return cls(
            bootstrap_servers,
            connection,
            secrets,
            Compression(mirror["compression.type"]),
            _number("replication.factor", mirror["replication.factor"], -1),
            topic,
        )

    @property
    def request_timeout_seconds(self) -> float:
        return int(self.connection["request.timeout.ms"]) / 1000

    def for_confluent(self) -> dict[str, str]:
        """As librdkafka takes it: with the passwords."""
        given = {name: value for name, value in self.connection.items() if value}
        given.pop("request.timeout.ms")
        given |= {n: s.get_secret_value() for n, s in self.secrets.items() if s.get_secret_value()}
        if not self._uses_sasl:
            given = {n: v for n, v in given.items() if not n.startswith("sasl.")}
        if not self._uses_tls:
            given = {n: v for n, v in given.items() if not n.startswith("ssl.")}
        return {"bootstrap.servers": self.bootstrap_servers, **given}

    def for_aiokafka(self) -> dict[str, Any]:
        """As aiokafka's client takes it: with the passwords."""
        given: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap_servers.split(","),
            "client_id": self.connection["client.id"],
            "request_timeout_ms": int(self.connection["request.timeout.ms"]),
            "security_protocol": self.connection["security.protocol"],
        }
        if self._uses_sasl:
            given["sasl_mechanism"] = self.connection["sasl.mechanism"]
            given["sasl_plain_username"] = self.connection["sasl.username"]
            given["sasl_plain_password"] = self.secrets["sasl.password"].get_secret_value()
        if self._uses_tls:
            given["ssl_context"] = self._tls()
        return given

    @property
    def _uses_sasl(self) -> bool:
        return self.connection["security.protocol"].startswith("SASL_")

    @property
    def _uses_tls(self) -> bool:
        return self.connection["security.protocol"].endswith("SSL")

    def _tls(self) -> ssl.SSLContext:
        try:
            context = ssl.create_default_context(cafile=self.connection["ssl.ca.location"] or None)
            if self.connection["ssl.endpoint.identification.algorithm"] == "none":
                context.check_hostname = False
            certificate = self.connection["ssl.certificate.location"]
            if certificate:
                password = self.secrets["ssl.key.password"].get_secret_value()
                key = self.connection["ssl.key.location"] or None
                context.load_cert_chain(certificate, key, lambda: password)
        except (OSError, ValueError) as error:
            raise InvalidSetting(
                f"The certificates for Kafka cannot be used: {error}. ssl.ca.location, "
                "ssl.certificate.location and ssl.key.location are PEM files that belong together."
            ) from None
        return context


def _refuse(name: str, value: str) -> None:
    if name in _FIXED:
        if value.lower() not in _FIXED[name]:
            raise InvalidSetting(
                f"{name}={value} would lose or repeat records: the mirror needs "
                f"{name}={_FIXED[name][0]}, which it has by itself. Leave it out."
            )
        return
    if name in _OURS:
        raise InvalidSetting(f"{name} cannot be set. {_OURS[name]}")
    known = [*_CONNECTION, *_MIRROR]
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


def _number(name: str, value: str, least: int) -> int:
    try:
        number = int(value)
    except ValueError:
        number = least - 1
    if number < least or number == 0:
        raise InvalidSetting(f"{name} is a whole number above 0; got '{value}'.")
    return number
