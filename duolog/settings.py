"""Settings: duolog.toml in the current folder, then DUOLOG_* variables, then flags; later ones win.

    log = "orders.log"              DUOLOG_LOG              --log
    url = "https://bridge:7070"     DUOLOG_URL              --url
    token = "…"                     DUOLOG_TOKEN            --token
    cache_bytes = "256 MiB"         DUOLOG_CACHE_BYTES
    lock_wait_seconds = 2           DUOLOG_LOCK_WAIT_SECONDS
    max_timestamp_ahead_seconds = 3600  DUOLOG_MAX_TIMESTAMP_AHEAD_SECONDS: of a record's time
    writer_expiration_seconds = 604800  DUOLOG_WRITER_EXPIRATION_SECONDS
    max_stored_groups = 100000      DUOLOG_MAX_STORED_GROUPS: that have a position

    [avro]                          DUOLOG_AVRO (JSON)
    "schema.registry.url" = "…"     as Confluent's serializers call their options

    [serve]                         DUOLOG_SERVE (JSON)
    listen = "127.0.0.1:7070"       --listen
    tokens = "tokens"               --tokens

    [registry]                      DUOLOG_REGISTRY (JSON)
    listen = "127.0.0.1:8081"       --listen of `duolog registry`; all else is as in [serve]

    [kafka]                         DUOLOG_KAFKA (JSON)
    "bootstrap.servers" = "h:9092"  --bootstrap-servers
    "sasl.username" = "…"           -X sasl.username=…: Kafka's names

    [mirror]                        DUOLOG_MIRROR (JSON)
    when_refused = "dlq"            or "halt": records that Kafka does not take
    offset_header = "log-offset"    a header with each record's offset in the log; none if not set
    groups_exclude = "test-.*"      --groups-exclude

    [topics]                        DUOLOG_TOPICS (JSON)
    max_consume_timeout = 300

    [sql]                           DUOLOG_SQL (JSON)
    timeout_seconds = 30            what a SELECT over HTTP may use

    [members]                       DUOLOG_MEMBERS (JSON)
    max_members = 10000             how many consumers may be members of groups

    [metrics]                       DUOLOG_METRICS (JSON)
    groups_always = "billing"       what /metrics shows one by one, and how much of it

Sizes are numbers of bytes or words like "64 MiB".
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    ByteSize,
    ConfigDict,
    Field,
    FiniteFloat,
    SecretStr,
    ValidationError,
)
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from duolog.errors import InvalidSetting
from duolog.log.options import LogOptions

if TYPE_CHECKING:
    from duolog.bridge.serve.options import HostOptions, TlsFiles

FILE_NAME = "duolog.toml"
_PREFIX = "DUOLOG_"
_DEFAULTS = LogOptions()
_SECRET = frozenset({"token", "avro", "kafka"})  # what they hold is never repeated


class ServeSettings(BaseModel):
    """How `duolog serve` runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    listen: str = "127.0.0.1:7070"
    tokens: Path | None = None
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    advertise: str | None = None
    trust_proxy: str | None = None  # addresses of proxies, with commas
    retention_every_seconds: FiniteFloat = 60.0
    group_retention_seconds: FiniteFloat = 604_800.0  # 0: for ever
    max_body_bytes: ByteSize = ByteSize(8 << 20)
    max_record_headers: int = 1000
    max_request_headers: int = 100_000
    max_record_values: int = 100_000
    max_request_values: int = 400_000
    max_large_requests: int = 256
    max_bytes_at_once: ByteSize = ByteSize(48 << 20)
    large_request_memory: ByteSize = ByteSize(80 << 20)
    answer_memory: ByteSize = ByteSize(48 << 20)
    max_connections: int = 10_000
    headers_within_seconds: FiniteFloat = 10.0
    body_silence_seconds: FiniteFloat = 30.0
    ready_when_degraded: bool = True

    def tls(self) -> TlsFiles | None:
        from duolog.bridge.serve.options import TlsFiles

        if self.tls_certificate is None:
            if self.tls_key or self.tls_client_ca:
                raise InvalidSetting("TLS takes a certificate: give tls_certificate too.")
            return None
        return TlsFiles(self.tls_certificate, self.tls_key, self.tls_client_ca)


class RegistrySettings(BaseModel):
    """Where `duolog registry` listens, and how much any registry of ours takes. All else is as
    for `duolog serve`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    listen: str = "127.0.0.1:8081"  # where clients look for a registry
    max_schemas_bytes: ByteSize = ByteSize(64 << 20)


class TopicsSettings(BaseModel):
    """What holds for all topics of a host."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    default_consume_timeout: FiniteFloat = 30.0  # seconds
    max_consume_timeout: FiniteFloat = 300.0  # seconds
    allow_user_role_consume: bool = False
    max_partitions: int = 4096  # that a topic is given over the host
    poll_interval_ms: float | None = None  # taken, and without effect: an append wakes its polls


class SqlSettings(BaseModel):
    """What the queries may use that a host is sent."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_processes: int = 2
    timeout_seconds: FiniteFloat = 30.0
    memory_bytes: ByteSize = ByteSize(1 << 30)
    max_rows: int = 100_000
    max_answer_bytes: ByteSize = ByteSize(32 << 20)
    idle_seconds: FiniteFloat = 60.0


class MembersSettings(BaseModel):
    """How many consumers may be members of groups at a host, and in how many groups."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_members_of_group: int = 1_000
    max_members: int = 10_000
    max_members_per_token: int = 2_000
    max_groups: int = 10_000
    max_groups_per_token: int = 2_000
    max_stored_groups_of_token: int = 10_000
    max_proxies: int = 200


class MetricsSettings(BaseModel):
    """What `/metrics` shows one by one; all else is summed up."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    max_group_partitions: int = 2000
    max_topic_partitions: int = 2000
    groups_always: str = ""  # regular expressions, with commas
    topics_always: str = ""


class MirrorSettings(BaseModel):
    """How a log is mirrored into Kafka."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    when_refused: Literal["dlq", "halt"] = "dlq"
    offset_header: str | None = Field(default=None, min_length=1, max_length=200)
    groups: str = ".*"
    groups_exclude: str = "console-consumer-.*,connect-.*,__.*"


class Settings(BaseSettings):
    """What holds for one run of the program. Made by `load_settings`."""

    file: ClassVar[Path] = Path(FILE_NAME)

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX,
        env_nested_delimiter="__",
        env_ignore_empty=True,
        extra="forbid",
        frozen=True,
    )

    log: str | None = None  # the log's directory; text, so that an address is refused as typed
    url: str | None = None  # where its host is asked
    token: SecretStr | None = None
    max_record_bytes: ByteSize = ByteSize(_DEFAULTS.max_record_bytes)
    max_fetch_records: int = _DEFAULTS.max_fetch_records
    cache_bytes: ByteSize = ByteSize(_DEFAULTS.cache_bytes)
    min_free_bytes: ByteSize = ByteSize(_DEFAULTS.min_free_bytes)
    lock_wait_seconds: FiniteFloat = _DEFAULTS.lock_wait_seconds
    max_timestamp_ahead_seconds: FiniteFloat = _DEFAULTS.max_timestamp_ahead_seconds
    writer_expiration_seconds: FiniteFloat = _DEFAULTS.writer_expiration_seconds
    max_stored_groups: int = _DEFAULTS.max_stored_groups
    avro: dict[str, SecretStr] = {}  # some of them are passwords
    kafka: dict[str, SecretStr] = {}  # here too
    mirror: MirrorSettings = MirrorSettings()
    serve: ServeSettings = ServeSettings()
    registry: RegistrySettings = RegistrySettings()
    topics: TopicsSettings = TopicsSettings()
    sql: SqlSettings = SqlSettings()
    members: MembersSettings = MembersSettings()
    metrics: MetricsSettings = MetricsSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        del dotenv_settings, file_secret_settings
        in_file = InitSettingsSource(settings_cls, _read_file(cls.file))
        return init_settings, env_settings, in_file

    def token_text(self) -> str | None:
        return None if self.token is None else self.token.get_secret_value()

    def avro_options(self) -> dict[str, str]:
        """The options that Confluent's serializers know."""
        return {name: value.get_secret_value() for name, value in self.avro.items()}

    def kafka_options(self) -> dict[str, str]:
        """What Kafka's clients know, by its names; empty where there is no Kafka."""
        return {name: value.get_secret_value() for name, value in self.kafka.items()}

    def log_options(self) -> LogOptions:
        """How to open a log. Raises InvalidSetting for numbers that no log runs with."""
        return LogOptions(
            max_record_bytes=int(self.max_record_bytes),
            max_fetch_records=self.max_fetch_records,
            cache_bytes=int(self.cache_bytes),
            min_free_bytes=int(self.min_free_bytes),
            lock_wait_seconds=self.lock_wait_seconds,
            max_timestamp_ahead_seconds=self.max_timestamp_ahead_seconds,
            writer_expiration_seconds=self.writer_expiration_seconds,
            max_stored_groups=self.max_stored_groups,
        )

    def host_options(self) -> HostOptions:
        """How to serve a log. Raises InvalidSetting for what no host runs with."""
        from duolog.bridge.http.rules import BodyLimits, TopicRules
        from duolog.bridge.members.model import Rules as MemberRules
        from duolog.bridge.metrics.bounds import MetricRules
        from duolog.bridge.serve.connections import ConnectionRules
        from duolog.bridge.serve.options import HostOptions
        from duolog.bridge.sql.rules import SqlRules
        from duolog.server.address import Address

        return HostOptions(
            Address.of(self.serve.listen),
            self.serve.advertise,
            self.serve.tokens,
            self.serve.tls(),
            self.serve.retention_every_seconds,
            TopicRules(**self.topics.model_dump(exclude={"poll_interval_ms"})),
            BodyLimits(
                int(self.serve.max_body_bytes),
                int(self.serve.max_bytes_at_once),
                large_request_memory=int(self.serve.large_request_memory),
                answer_memory=int(self.serve.answer_memory),
                max_record_headers=self.serve.max_record_headers,
                max_request_headers=self.serve.max_request_headers,
                max_record_values=self.serve.max_record_values,
                max_request_values=self.serve.max_request_values,
                max_large_requests=self.serve.max_large_requests,
            ),
            SqlRules(**self.sql.model_dump()),
            ConnectionRules(
                self.serve.max_connections,
                self.serve.headers_within_seconds,
                self.serve.body_silence_seconds,
            ),
            self.serve.ready_when_degraded,
            MemberRules(**self.members.model_dump()),
            MetricRules.of(**self.metrics.model_dump()),
            self.serve.group_retention_seconds,
            tuple(
                each.strip() for each in (self.serve.trust_proxy or "").split(",") if each.strip()
            ),
            max_schemas_bytes=int(self.registry.max_schemas_bytes),
        )

    def registry_options(self) -> HostOptions:
        """How to serve a log's registry by itself."""
        from duolog.server.address import Address

        return replace(self.host_options(), listen=Address.of(self.registry.listen), advertise=None)


def load_settings(flags: Mapping[str, Any] | None = None, *, file: Path | None = None) -> Settings:
    """The settings in force. Flags that are None were not given; a file that is named must be."""
    given = _given(flags or {})
    if file is not None and not file.exists():
        raise InvalidSetting(f"There is no settings file {file}.")
    kind = Settings if file is None else _reading(file)
    try:
        settings = kind(**given)
    except ValidationError as error:
        raise InvalidSetting(_told(error, given, kind.file)) from None
    except SettingsError as error:  # says which field, and not what it holds
        raise InvalidSetting(f"A {_PREFIX}* variable holds no JSON: {error}.") from None
    settings.log_options()
    return settings


def _reading(path: Path) -> type[Settings]:
    class SettingsElsewhere(Settings):
        file = path

    return SettingsElsewhere


def _given(flags: Mapping[str, Any]) -> dict[str, Any]:
    inner = {
        name: _given(value) if isinstance(value, Mapping) else value
        for name, value in flags.items()
    }
    return {name: value for name, value in inner.items() if value not in (None, {})}


def _read_file(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InvalidSetting(f"{path} cannot be read: {error.strerror}.") from error
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError
        raise InvalidSetting(f"{path} is not valid TOML: {error}.") from error
    _check_known(found, Settings, str(path))
    tables: dict[str, type[BaseModel]] = {
        "serve": ServeSettings,
        "registry": RegistrySettings,
        "topics": TopicsSettings,
        "sql": SqlSettings,
        "mirror": MirrorSettings,
        "members": MembersSettings,
        "metrics": MetricsSettings,
    }
    for table, kind in tables.items():
        if isinstance(found.get(table), dict):
            _check_known(found[table], kind, f"[{table}] in {path}")
    return found


def _check_known(found: Mapping[str, Any], kind: type[BaseModel], where: str) -> None:
    known = list(kind.model_fields)
    for name in found:
        if name not in known:
            raise InvalidSetting(_unknown_key(where, name, known))


def _unknown_key(where: str, name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0)[0]
    return (
        f"{where} has an unknown key '{name}'. The nearest known one is '{near}'; all are: "
        f"{', '.join(known)}."
    )


def _told(error: ValidationError, flags: Mapping[str, Any], file: Path) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    name, *inner = map(str, first["loc"])
    full = ".".join((name, *inner))
    if first["type"] == "extra_forbidden" and not _is_in(flags, name, *inner):
        return _unknown_in_environment(name, inner[0])
    if _is_in(flags, name, *inner):
        source = "--" + (name, *inner)[-1].replace("_", "-")
    elif variable := _variable_of(name, *inner):
        source = variable
    elif variable := _variable_of(name):
        source = f"'{full}' in {variable}"
    else:
        source = f"'{full}' in {file}"
    reason = str(first["msg"])
    what = "what it is" if name in _SECRET else repr(first["input"])
    return f"{source} cannot be {what}: {reason[0].lower()}{reason[1:].rstrip('.')}."


def _unknown_in_environment(table: str, name: str) -> str:
    """A key that a table does not have. Those of files were looked at before."""
    kind = Settings.model_fields[table].annotation
    known = (
        list(kind.model_fields) if isinstance(kind, type) and issubclass(kind, BaseModel) else []
    )
    variable = _variable_of(table, name)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0)[0]
    if variable is None:
        return _unknown_key(_variable_of(table) or f"[{table}] in the environment", name, known)
    return (
        f"The variable {variable} names no setting. The nearest known one is "
        f"{_PREFIX}{table.upper()}__{near.upper()}; all of [{table}] are: {', '.join(known)}."
    )


def _variable_of(*names: str) -> str | None:
    """The variable of the environment that sets this, as it is written there."""
    wanted = _PREFIX + "__".join(names).upper()
    return next((each for each in os.environ if each.upper() == wanted), None)


def _is_in(flags: Any, *names: str) -> bool:
    for name in names:
        if not isinstance(flags, Mapping) or name not in flags:
            return False
        flags = flags[name]
    return True
