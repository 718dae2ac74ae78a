"""How a registry is reached and used, in the words of Confluent's serializers.

| option                                            | default                                      |
|---------------------------------------------------|----------------------------------------------|
| schema.registry.url                               | one address or several, comma between        |
| basic.auth.credentials.source                     | URL; or USER_INFO                            |
| basic.auth.user.info                              | name:password                                |
| bearer.auth.token                                 | sent as it is                                |
| bearer.auth.logical.cluster, .identity.pool.id    | sent along, for Confluent Cloud              |
| ssl.ca.location                                   | PEM file or folder; the usual authorities    |
| ssl.certificate.location, ssl.key.location        | PEM files, for registries that ask for one   |
| ssl.key.password                                  |                                              |
| proxy; proxy.host and proxy.port                  | as the environment says                      |
| request.header.NAME                               | sent with each request                       |
| timeout                                           | 30 seconds for one answer                    |
| http.connect.timeout.ms, http.read.timeout.ms     | the same, apart                              |
| max.retries                                       | 3                                            |
| retries.wait.ms, retries.max.wait.ms              | 1000 before the first, never above 20000     |
| retries.deadline.ms                               | 60000 for a call with all its retries; ours  |
| max.schemas.per.subject or cache.capacity         | 1000 schemas are remembered                  |
| latest.cache.ttl.sec or cache.latest.ttl.sec      | 0: `latest` is asked each time; -1: once     |
| auto.register.schemas                             | true, unless one of the next two is set      |
| use.latest.version                                | false                                        |
| use.schema.id                                     | none                                         |
| latest.compatibility.strict                       | true: what is written must fit the latest    |
| id.compatibility.strict                           | true: what is written must fit that id       |
| normalize.schemas                                 | false                                        |
| key.subject.name.strategy, value.…                | Topic; or Record, TopicRecord                |
| subject.name.strategy                             | both of them                                 |

Each also with the prefix `schema.registry.`, as Java's clients have some of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from duolog.avro.registry.connection_options import ConnectionOptions, connection_options
from duolog.avro.registry.option_names import is_registry_option, read_options
from duolog.avro.registry.serializer_options import SerializerOptions, serializer_options

__all__ = ["ConnectionOptions", "RegistryOptions", "SerializerOptions", "is_registry_option"]


@dataclass(frozen=True, slots=True)
class RegistryOptions:
    """Both. Without an address there is no connection: the log's own registry is meant."""

    connection: ConnectionOptions | None = None
    serializer: SerializerOptions = field(default_factory=SerializerOptions)

    @classmethod
    def of(cls, given: Mapping[str, str]) -> RegistryOptions:
        """What these options say. Raises InvalidSetting for unknown names and contradictions."""
        read = read_options(given)
        return cls(connection_options(read), serializer_options(read))
