"""Which of Kafka's settings there are here, as librdkafka calls them, and what they may be. Pure.

Each is honoured by both client libraries, or is none of theirs. `docs/guide/kafka.md` has a row for
each of them.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PASSWORD_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
OAUTHBEARER: Final = "OAUTHBEARER"
MECHANISMS: Final = (*PASSWORD_MECHANISMS, OAUTHBEARER)
METHODS: Final = ("default", "oidc")
ALGORITHMS: Final = ("https", "none")

CONNECTION: Final = MappingProxyType(
    {
        "client.id": "duolog",
        "security.protocol": "PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "",
        "sasl.password": "",
        "sasl.oauthbearer.method": "default",
        "sasl.oauthbearer.client.id": "",
        "sasl.oauthbearer.client.secret": "",
        "sasl.oauthbearer.scope": "",
        "sasl.oauthbearer.extensions": "",
        "sasl.oauthbearer.token.endpoint.url": "",
        "sasl.oauthbearer.token.provider": "",
        "https.ca.location": "",
        "ssl.ca.location": "",
        "ssl.ca.pem": "",
        "ssl.crl.location": "",
        "ssl.certificate.location": "",
        "ssl.certificate.pem": "",
        "ssl.key.location": "",
        "ssl.key.pem": "",
        "ssl.key.password": "",
        "ssl.cipher.suites": "",
        "ssl.endpoint.identification.algorithm": "https",
        "enable.ssl.certificate.verification": "true",
        "request.timeout.ms": "30000",
        "socket.connection.setup.timeout.ms": "30000",
        "connections.max.idle.ms": "0",
    }
)
"""With their defaults."""

MIRROR: Final = MappingProxyType({"compression.type": "zstd", "replication.factor": "-1"})
TOPIC_PREFIX: Final = "topic."

SECRETS: Final = frozenset(
    {"sasl.password", "ssl.key.password", "ssl.key.pem", "sasl.oauthbearer.client.secret"}
)

NUMBERS: Final = MappingProxyType(  # and what is their least
    {
        "request.timeout.ms": 1,
        "socket.connection.setup.timeout.ms": 1000,
        "connections.max.idle.ms": 0,
    }
)

ALSO_NAMED: Final = MappingProxyType(
    {
        "sasl.mechanisms": "sasl.mechanism",
        "sasl.oauthbearer.client.credentials.client.id": "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.client.credentials.client.secret": "sasl.oauthbearer.client.secret",
    }
)

FIXED: Final = MappingProxyType(  # other values would break what is promised
    {
        "acks": ("all", "-1"),
        "request.required.acks": ("all", "-1"),
        "enable.idempotence": ("true",),
    }
)

_PEM: Final = "Give PEM files: ssl.ca.location, ssl.certificate.location and ssl.key.location."
OURS: Final = MappingProxyType(
    {
        "transactional.id": "The mirror is exactly once by its sequence numbers; leave it out.",
        "partitioner": "A record's partition is the log's; leave it out.",
        "bootstrap.servers": "Give it as --bootstrap-servers.",
        "metadata.broker.list": "Give it as --bootstrap-servers.",
        "sasl.jaas.config": "Give sasl.mechanism, sasl.username and sasl.password.",
        "ssl.keystore.location": _PEM,
        "ssl.keystore.password": _PEM,
        "ssl.keystore.type": _PEM,
        "ssl.truststore.location": _PEM,
        "ssl.truststore.password": _PEM,
        "ssl.truststore.type": _PEM,
    }
)


def canonical(name: str) -> str:
    """The one name of a setting that has several."""
    return ALSO_NAMED.get(name, name)
