"""Settings of Kafka, what a Kafka topic must be, and what an answer means."""

from __future__ import annotations

import pytest
import typer

from duolog.bridge.kafka.mirror.fitness import (
    ANY_TIME,
    check_fit,
    check_partitions,
    limits_of,
    wanted_settings,
    warnings_of,
)
from duolog.bridge.kafka.mirror.pieces import Limits
from duolog.bridge.kafka.mirror.reactions import Reaction, halted_by, reaction_to
from duolog.bridge.kafka.setting_names import SECRETS
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.bridge.kafka.wire.compression import Compression
from duolog.cli.kafka_options import kafka_flags
from duolog.errors import (
    InvalidSetting,
    KafkaTopicUnfit,
    MirrorDiverged,
    MirrorHalted,
    MirrorRefused,
)

SERVERS = "a:9092,b:9093"


def test_plain_settings() -> None:
    settings = KafkaSettings.of(SERVERS)
    assert settings.compression is Compression.ZSTD
    assert settings.for_confluent() == {
        "bootstrap.servers": SERVERS,
        "client.id": "duolog",
        "security.protocol": "PLAINTEXT",
        "socket.connection.setup.timeout.ms": "30000",
        "connections.max.idle.ms": "0",
    }
    assert settings.for_aiokafka() == {
        "bootstrap_servers": ["a:9092", "b:9093"],
        "client_id": "duolog",
        "request_timeout_ms": 30000,
        "security_protocol": "PLAINTEXT",
    }


def test_passwords_are_passed_on_and_never_shown() -> None:
    settings = KafkaSettings.of(
        SERVERS,
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanisms": "SCRAM-SHA-256",
            "sasl.username": "ann",
            "sasl.password": "a-secret-word",
        },
    )
    assert "a-secret-word" not in repr(settings)
    assert settings.for_confluent()["sasl.password"] == "a-secret-word"
    assert settings.for_confluent()["sasl.mechanism"] == "SCRAM-SHA-256"
    assert settings.for_aiokafka()["sasl_plain_password"] == "a-secret-word"


def test_host_names_are_checked_unless_said_otherwise() -> None:
    given = {"security.protocol": "SSL"}
    checked = KafkaSettings.of(SERVERS, given)
    assert checked.for_aiokafka()["ssl_context"].check_hostname
    assert checked.for_confluent()["ssl.endpoint.identification.algorithm"] == "https"
    given["ssl.endpoint.identification.algorithm"] = "none"
    assert not KafkaSettings.of(SERVERS, given).for_aiokafka()["ssl_context"].check_hostname


def test_settings_of_topics_and_of_the_mirror() -> None:
    settings = KafkaSettings.of(
        SERVERS,
        {
            "compression.type": "none",
            "replication.factor": "3",
            "topic.min.insync.replicas": "2",
            "acks": "all",
        },
    )
    assert settings.compression is Compression.NONE
    assert settings.replication_factor == 3
    assert settings.topic_settings == {"min.insync.replicas": "2"}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("acks", "1", "acks=all"),
        ("enable.idempotence", "false", "lose or repeat"),
        ("transactional.id", "x", "leave it out"),
        ("compresion.type", "zstd", "Did you mean compression.type"),
        ("sasl.pasword", "a-secret-word", "Did you mean sasl.password"),
        ("compression.type", "lz4", "one of none, zstd"),
        ("security.protocol", "TLS", "one of PLAINTEXT"),
        ("sasl.mechanism", "GSSAPI", "one of PLAIN"),
        ("sasl.oauthbearer.method", "jwt", "one of default, oidc"),
        ("enable.ssl.certificate.verification", "no", "one of true, false"),
        ("socket.connection.setup.timeout.ms", "1", "1000 or more"),
        ("connections.max.idle.ms", "-1", "0 or more"),
        ("sasl.jaas.config", "a-secret-word", "Give sasl.mechanism"),
        ("ssl.keystore.password", "a-secret-word", "Give PEM files"),
        ("ssl.truststore.location", "x", "Give PEM files"),
        ("bootstrap.servers", "x:1", "--bootstrap-servers"),
        ("sasl.password", "a-secret-word", "security.protocol=PLAINTEXT makes no use of it"),
        ("ssl.ca.location", "ca.pem", "security.protocol=SSL or SASL_SSL"),
        ("enable.ssl.certificate.verification", "false", "makes no use of it"),
        ("ssl.endpoint.identification.algorithm", "", "one of https, none"),
        ("replication.factor", "0", "above 0"),
        ("request.timeout.ms", "soon", "above 0"),
        ("quite.another", "1", "There are: client.id"),
    ],
)
def test_settings_that_cannot_be(name: str, value: str, said: str) -> None:
    with pytest.raises(InvalidSetting, match=said) as refused:
        KafkaSettings.of(SERVERS, {name: value})
    assert "a-secret-word" not in str(refused.value)


@pytest.mark.parametrize("servers", ["", "a", "a:", ":9092", "a:x", "a:0", "a:99999", "a:1,,b:2"])
def test_servers_that_cannot_be(servers: str) -> None:
    with pytest.raises(InvalidSetting, match="host:port"):
        KafkaSettings.of(servers)


SASL = {"security.protocol": "SASL_PLAINTEXT"}
TOKENS = {**SASL, "sasl.mechanism": "OAUTHBEARER"}
OIDC = {
    **TOKENS,
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "duolog",
    "sasl.oauthbearer.client.credentials.client.secret": "a-secret-word",
    "sasl.oauthbearer.token.endpoint.url": "https://issuer.example/token",
}
HOOK = {**TOKENS, "sasl.oauthbearer.token.provider": "tests.support.token_hook:token"}


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (SASL, "needs sasl.username and sasl.password"),
        ({**SASL, "sasl.username": "ann"}, "needs sasl.password"),
        (TOKENS, "token.provider=module:function"),
        ({**TOKENS, "sasl.oauthbearer.method": "oidc"}, "needs sasl.oauthbearer.token.endpoint"),
        ({**OIDC, "sasl.oauthbearer.extensions": "a"}, "name=value"),
        ({**SASL, "ssl.ca.location": "x", "sasl.username": "a"}, "makes no use of it"),
    ],
)
def test_a_login_that_cannot_be(settings: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidSetting, match=said) as refused:
        KafkaSettings.of(SERVERS, settings)
    assert "a-secret-word" not in str(refused.value)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("tests.support.token_hook", "module:function"),
        ("os;system:x", "module:function"),
        ("../x:y", "module:function"),
        ("no.such.module:token", "PYTHONPATH"),
        ("tests.support.token_hook:none", "cannot be found"),
        ("tests.support.token_hook:NOTHING", "is no function"),
    ],
)
def test_a_token_provider_that_cannot_be(named: str, said: str) -> None:
    with pytest.raises(InvalidSetting, match=said):
        KafkaSettings.of(SERVERS, {**HOOK, "sasl.oauthbearer.token.provider": named})


@pytest.mark.parametrize("settings", [OIDC, HOOK], ids=["oidc", "hook"])
def test_tokens_come_from_one_place_for_both_libraries(settings: dict[str, str]) -> None:
    made = KafkaSettings.of(SERVERS, {**settings, "sasl.oauthbearer.extensions": "a=b, c=d"})
    confluent, aiokafka = made.for_confluent(), made.for_aiokafka()
    assert confluent["sasl.mechanism"] == aiokafka["sasl_mechanism"] == "OAUTHBEARER"
    assert callable(confluent["oauth_cb"])
    assert aiokafka["sasl_oauth_token_provider"].extensions() == {"a": "b", "c": "d"}
    assert not [name for name in confluent if name.startswith(("sasl.oauthbearer", "https."))]
    assert "a-secret-word" not in f"{made!r}{confluent}{aiokafka}"


def test_every_setting_of_librdkafkas_is_one_that_it_knows() -> None:
    from confluent_kafka import Consumer

    given = {
        "security.protocol": "SASL_SSL",
        "sasl.username": "ann",
        "sasl.password": "a-secret-word",
        "ssl.cipher.suites": "DEFAULT",
        "connections.max.idle.ms": "180000",
    }
    options = KafkaSettings.of(SERVERS, given).for_confluent()
    Consumer({**options, "group.id": "g", "log_level": 0}).close()
    assert options["connections.max.idle.ms"] == "180000"
    ours = KafkaSettings.of(SERVERS, given).for_aiokafka()
    assert ours["max_idle_ms"] == 180000


def test_secrets_are_not_taken_from_the_command_line() -> None:
    for name in (*SECRETS, "sasl.oauthbearer.client.credentials.client.secret"):
        with pytest.raises(typer.BadParameter, match="Everybody on this machine"):
            kafka_flags(None, [f"{name}=a-secret-word"])


def test_certificates_that_are_not_there() -> None:
    given = {"security.protocol": "SSL", "ssl.ca.location": "/no/such/file"}
    with pytest.raises(InvalidSetting, match=r"ssl\.ca\.location"):
        KafkaSettings.of(SERVERS, given).for_aiokafka()


def test_a_topic_that_is_made_takes_all_that_the_log_has() -> None:
    made = wanted_settings(1 << 20, {"min.insync.replicas": "2"})
    assert made["min.insync.replicas"] == "2"
    assert limits_of(made) == Limits((1 << 20) + (64 << 10))
    check_fit("orders", made)
    assert warnings_of("orders", made) == ()


def test_what_a_topic_takes() -> None:
    bounded = {
        "max.message.bytes": "1000",
        "message.timestamp.after.max.ms": "3600000",
        "message.timestamp.before.max.ms": str(ANY_TIME),
    }
    assert limits_of(bounded) == Limits(1000, 3600000, None)


@pytest.mark.parametrize(
    "setting",
    [
        {"cleanup.policy": "compact"},
        {"cleanup.policy": "compact,delete"},
        {"message.timestamp.type": "LogAppendTime"},
    ],
)
def test_a_topic_that_changes_records_is_refused(setting: dict[str, str]) -> None:
    with pytest.raises(KafkaTopicUnfit, match="Kafka topic 'orders'"):
        check_fit("orders", setting)


def test_a_topic_that_deletes_by_itself_is_warned_of() -> None:
    (said,) = warnings_of("orders", {"retention.ms": "1000", "retention.bytes": "-1"})
    assert "retention.ms=1000" in said


def test_partitions_are_added_and_never_taken_away() -> None:
    assert check_partitions("orders", "orders", 4, 4) == 0
    assert check_partitions("orders", "orders", 6, 4) == 2
    with pytest.raises(KafkaTopicUnfit, match="SET PARTITIONS 5"):
        check_partitions("orders", "orders", 4, 5)


@pytest.mark.parametrize(
    ("error", "reaction"),
    [
        (45, Reaction.RECOVER),
        (46, Reaction.RECOVER),
        (2, Reaction.RECOVER),
        (6, Reaction.LOOK_AGAIN),  # another broker leads now
        (7, Reaction.LOOK_AGAIN),
        (3, Reaction.LOOK_AGAIN),
        (100, Reaction.LOOK_AGAIN),
        (9999, Reaction.LOOK_AGAIN),
        (10, Reaction.JUDGE),
        (32, Reaction.JUDGE),
        (29, Reaction.HALT),
        (47, Reaction.HALT),
    ],
)
def test_what_an_answer_means(error: int, reaction: Reaction) -> None:
    assert reaction_to(error) is reaction


@pytest.mark.parametrize(
    ("error", "kind"),
    [(29, MirrorRefused), (47, MirrorDiverged), (76, KafkaTopicUnfit), (44, KafkaTopicUnfit)],
)
def test_a_halt_says_what_kafka_said(error: int, kind: type[MirrorHalted]) -> None:
    halted = halted_by(error, "orders", 3, "no, thank you")
    assert type(halted) is kind
    assert "'orders' partition 3" in str(halted)
    assert "no, thank you" in str(halted)
