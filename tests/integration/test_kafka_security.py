"""Every way into a secured Kafka works for all clients of the bridge; every wrong one is named."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from duolog import open_log
from duolog.bridge.kafka.audit import audit
from duolog.bridge.kafka.audit.kafka_reader import KafkaReader
from duolog.bridge.kafka.feed.coordinator import GroupCoordinator, KafkaPartition
from duolog.bridge.kafka.feed.reading import GroupFeed
from duolog.bridge.kafka.positions.settling import GroupSettling
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.errors import (
    DuologError,
    KafkaLoginRefused,
    KafkaTokenUnavailable,
    KafkaUnreachable,
    KafkaUntrusted,
)
from duolog.log.embedded import EmbeddedLog
from duolog.log.model import Record
from tests.support import token_hook
from tests.support.groups import until
from tests.support.mirror_runner import RunningMirror, read_all, read_log
from tests.support.secured import (
    CLIENT_SECRET,
    PASSWORD,
    SecuredKafka,
    TokenEndpoint,
    Way,
    oidc,
)

WRONG = "not-the-right-password"
GROUP = "billing"
WAYS = (
    "SSL",
    "MTLS",
    "SASL_PLAINTEXT/PLAIN",
    "SASL_PLAINTEXT/SCRAM-SHA-256",
    "SASL_SSL/SCRAM-SHA-512",
    "SASL_SSL/OAUTHBEARER",
)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with open_log(tmp_path / "log", create=True) as opened:
        yield opened


@pytest.fixture
def topic(log: EmbeddedLog) -> str:
    """A topic whose name no other test's topic in Kafka has."""
    name = f"guarded-{uuid.uuid4().hex[:12]}"
    log.create_topic(name)
    return name


@pytest.fixture(autouse=True)
def tokens(secured: SecuredKafka) -> Iterator[None]:
    """The hook gives Ann's tokens, until a test says otherwise."""
    token_hook.answers = lambda: secured.issuer.token("ann")
    yield
    token_hook.answers = None


def publish(log: EmbeddedLog, topic: str, count: int) -> None:
    log.publish(topic, [Record(b"%d" % number, key=b"k") for number in range(count)])


def all_of_it_works(log: EmbeddedLog, topic: str, way: Way, plain_servers: str) -> None:
    """A record is mirrored, a group goes on from either side, and the audit finds all equal."""
    settings = KafkaSettings.of(way.bootstrap_servers, way.settings)
    group = f"{GROUP}-{topic}"
    publish(log, topic, 50)
    with (
        RunningMirror(log, way.bootstrap_servers, settings) as mirror,
        closing(GroupSettling(log, settings, mirrors=mirror.mirrors)) as settling,
        closing(GroupCoordinator(settings, log.log_id)) as coordinator,
    ):
        settling.start()
        mirror.caught_up(topic)
        log.ack(group, topic, 29)

        def in_kafka() -> int | None:
            (found,) = coordinator.committed(group, [KafkaPartition(topic, 0)]).values()
            return None if found is None else found.offset

        until(lambda: in_kafka() == 30, f"come to 30 in Kafka: {settling.status()}")
        until(lambda: [each.next_log_offset for each in log.mirrors(topic)] == [50], "store runs")
        report = audit(log, settings.for_confluent(), topics=[topic])
        assert report.is_equal, report
        assert report.compared == 50
        assert [each.kafka_position for each in report.positions if each.group == group] == [30]
    assert read_all(plain_servers, topic) == read_log(log, topic)


@pytest.mark.parametrize("kind", WAYS)
def test_all_clients_come_in(
    secured: SecuredKafka, log: EmbeddedLog, topic: str, kind: str
) -> None:
    all_of_it_works(log, topic, secured.way(kind), secured.plain.bootstrap_servers)


def test_connections_that_are_closed_when_idle_are_made_anew(
    secured: SecuredKafka, log: EmbeddedLog, topic: str
) -> None:
    way = secured.way("SSL").but(connections_max_idle_ms="100")
    all_of_it_works(log, topic, way, secured.plain.bootstrap_servers)


def test_tokens_of_an_oidc_server_serve_all_clients(
    secured: SecuredKafka, log: EmbeddedLog, topic: str
) -> None:
    way = secured.way("SASL_SSL/OAUTHBEARER").but(sasl_oauthbearer_token_provider=None)
    with TokenEndpoint(secured.issuer, "ann") as endpoint:
        way.settings.update(oidc(endpoint))
        all_of_it_works(log, topic, way, secured.plain.bootstrap_servers)
        assert len(endpoint.asked) == 1  # one token for all of them
        form = {"grant_type": ["client_credentials"], "scope": ["kafka"]}
        assert endpoint.asked[0]["form"] == form


def test_certificates_may_be_given_as_text(secured: SecuredKafka) -> None:
    way = secured.way("MTLS")
    names = {"ssl.ca": "ca", "ssl.certificate": "certificate", "ssl.key": "key"}
    for name in names:
        text = Path(way.settings.pop(f"{name}.location")).read_text()
        way.settings[f"{name}.pem"] = text
    assert looks(way) is None
    feed_of(way)


# -- what is wrong is said


def looks(way: Way) -> DuologError | None:
    """What the mirror's own connections say; None when they come in."""
    from duolog.bridge.kafka.mirror.connections import Connections

    async def look() -> None:
        connections = Connections(KafkaSettings.of(way.bootstrap_servers, way.settings))
        try:
            await connections.look(())
        finally:
            await connections.close()

    try:
        asyncio.run(look())
    except DuologError as error:
        return error
    return None


def feed_of(way: Way, timeout_seconds: float = 30.0) -> None:
    """librdkafka's consumer of group positions comes in, or says why not."""
    settings = KafkaSettings.of(way.bootstrap_servers, way.settings)
    with closing(GroupFeed(settings.for_confluent(), timeout_seconds=timeout_seconds)):
        pass


def reader_of(way: Way, timeout_seconds: float = 30.0) -> None:
    """The audit's consumer."""
    settings = KafkaSettings.of(way.bootstrap_servers, way.settings)
    with KafkaReader(settings.for_confluent(), deadline_seconds=timeout_seconds):
        pass


def forged(secured: SecuredKafka) -> Callable[[], tuple[str, float]]:
    def give() -> tuple[str, float]:
        token, ends = secured.issuer.token("ann")
        return f"{token.rpartition('.')[0]}.{'A' * 86}", ends

    return give


WRONG_WAYS: dict[str, tuple[Callable[[SecuredKafka], Way], type[DuologError], str]] = {
    "wrong password, SCRAM": (
        lambda kafka: kafka.way("SASL_SSL/SCRAM-SHA-512").but(sasl_password=WRONG),
        KafkaLoginRefused,
        "sasl.password",
    ),
    "wrong password, PLAIN": (
        lambda kafka: kafka.way("SASL_PLAINTEXT/PLAIN").but(sasl_password=WRONG),
        KafkaLoginRefused,
        "sasl.password",
    ),
    "unknown user": (
        lambda kafka: kafka.way("SASL_SSL/SCRAM-SHA-512").but(sasl_username="nobody"),
        KafkaLoginRefused,
        "sasl.username",
    ),
    "unknown authority": (
        lambda kafka: kafka.way("SASL_SSL/SCRAM-SHA-512").but(ssl_ca_location=None),
        KafkaUntrusted,
        "ssl.ca.location",
    ),
    "another host's certificate": (
        lambda kafka: kafka.way("ELSEWHERE"),
        KafkaUntrusted,
        "ssl.endpoint.identification.algorithm",
    ),
    "no certificate of ours": (
        lambda kafka: kafka.way("MTLS").but(ssl_certificate_location=None, ssl_key_location=None),
        KafkaUntrusted,
        "ssl.certificate.location",
    ),
    "no TLS there": (
        lambda kafka: Way(kafka.plain.bootstrap_servers, kafka.way("SSL").settings),
        KafkaUnreachable,
        "security.protocol",
    ),
    "TLS there": (
        lambda kafka: Way(kafka.way("SSL").bootstrap_servers, {}),
        KafkaUnreachable,
        "security.protocol",
    ),
    "a login wanted": (
        lambda kafka: Way(kafka.way("SASL_PLAINTEXT/PLAIN").bootstrap_servers, {}),
        KafkaUnreachable,
        "security.protocol",
    ),
    "a port where nobody is": (
        lambda kafka: Way("127.0.0.1:9", {}),
        KafkaUnreachable,
        "--bootstrap-servers",
    ),
    "a host that nobody knows": (
        lambda kafka: Way("no-such-host.invalid:9092", {}),
        KafkaUnreachable,
        "--bootstrap-servers",
    ),
}


@pytest.mark.parametrize("wrong", WRONG_WAYS)
def test_a_wrong_way_in_is_named_by_every_client(secured: SecuredKafka, wrong: str) -> None:
    make, kind, word = WRONG_WAYS[wrong]
    way = make(secured)
    said = looks(way)
    assert isinstance(said, kind), said
    assert word in str(said)
    # Who is not let in is told at once; that nobody is there is found out by waiting.
    seconds = 0.5 if kind is KafkaUnreachable else 30.0
    for client in (feed_of, reader_of):
        with pytest.raises(kind) as refused:
            client(way, seconds)
        assert word in str(refused.value)
        assert not any(secret in f"{said}{refused.value}" for secret in (WRONG, PASSWORD))


def test_a_certificate_for_another_name_is_taken_where_it_is_said_to_be_right(
    secured: SecuredKafka,
) -> None:
    way = secured.way("ELSEWHERE").but(ssl_endpoint_identification_algorithm="none")
    assert looks(way) is None
    feed_of(way)
    blind = secured.way("ELSEWHERE").but(
        ssl_ca_location=None, enable_ssl_certificate_verification="false"
    )
    assert looks(blind) is None
    feed_of(blind)


def raising() -> Any:
    raise ConnectionError("the vault is sealed")


@pytest.mark.parametrize(
    ("answers", "kind", "word"),
    [
        pytest.param("forged", KafkaLoginRefused, "sasl.oauthbearer", id="forged"),
        pytest.param(raising, KafkaTokenUnavailable, "the vault is sealed", id="raises"),
        pytest.param(lambda: None, KafkaTokenUnavailable, "seconds since 1970", id="none"),
        pytest.param(lambda: ("t", 1.0), KafkaTokenUnavailable, "has ended", id="ended"),
    ],
)
def test_a_token_that_is_none_is_named_by_every_client(
    secured: SecuredKafka, answers: Any, kind: type[DuologError], word: str
) -> None:
    token_hook.answers = forged(secured) if answers == "forged" else answers
    way = secured.way("SASL_SSL/OAUTHBEARER")
    said = looks(way)
    assert isinstance(said, kind), said
    assert word in str(said)
    for client in (feed_of, reader_of):
        with pytest.raises(kind) as refused:
            client(way)
        assert word in str(refused.value)


def test_a_secret_that_the_issuer_refuses_is_named_and_not_shown(secured: SecuredKafka) -> None:
    way = secured.way("SASL_SSL/OAUTHBEARER").but(sasl_oauthbearer_token_provider=None)
    with TokenEndpoint(secured.issuer, "ann") as endpoint:
        way.settings.update(oidc(endpoint, WRONG))
        said = looks(way)
    assert isinstance(said, KafkaTokenUnavailable)
    assert "401 (invalid_client: who are you?)" in str(said)
    assert WRONG not in str(said)
    assert CLIENT_SECRET not in str(said)


# -- and goes on when it is mended


def waits(mirror: RunningMirror, kind: type[DuologError]) -> None:
    mirror.wait(lambda: isinstance(mirror.trouble, kind), f"wait with {kind.__name__}")


def test_the_mirror_waits_for_the_right_password_and_goes_on(
    secured: SecuredKafka, log: EmbeddedLog, topic: str
) -> None:
    user = secured.new_user(WRONG)
    secured.allow_all(user)
    way = secured.way("SASL_SSL/SCRAM-SHA-512").but(sasl_username=user)
    publish(log, topic, 10)
    with RunningMirror(log, way.bootstrap_servers, way.settings) as mirror:
        waits(mirror, KafkaLoginRefused)
        secured.set_password(user, PASSWORD)
        mirror.caught_up(topic)
        assert mirror.trouble is None
    assert read_all(secured.plain.bootstrap_servers, topic) == read_log(log, topic)


def test_the_mirror_waits_for_a_provider_that_fails_or_hangs_and_goes_on(
    secured: SecuredKafka, log: EmbeddedLog, topic: str
) -> None:
    way = secured.way("SASL_SSL/OAUTHBEARER")
    settings = KafkaSettings.of(way.bootstrap_servers, way.settings)
    assert settings.tokens is not None
    settings.tokens.wait_seconds = 0.3
    publish(log, topic, 10)
    released = threading.Event()
    with hanging_until(released), RunningMirror(log, way.bootstrap_servers, settings) as mirror:
        mirror.wait(lambda: "not answered" in str(mirror.trouble), "say that it hangs")
        # The event loop has not stood still for it: it is asked from here and answers.
        answered = asyncio.run_coroutine_threadsafe(asyncio.sleep(0, "here"), mirror.loop)
        assert answered.result(5.0) == "here"
        token_hook.answers = raising
        mirror.wait(lambda: "vault" in str(mirror.trouble), "say that it raises")
        token_hook.answers = lambda: secured.issuer.token("ann")
        settings.tokens.wait_seconds = 10.0
        mirror.caught_up(topic)


@contextmanager
def hanging_until(released: threading.Event) -> Iterator[None]:
    def hang() -> Any:
        released.wait()
        raise TimeoutError

    token_hook.answers = hang
    try:
        yield
    finally:
        released.set()


def test_nothing_is_lost_or_doubled_while_tokens_end_again_and_again(
    secured: SecuredKafka, log: EmbeddedLog, topic: str
) -> None:
    given: list[float] = []

    def short_lived() -> tuple[str, float]:
        given.append(time.monotonic())
        return secured.issuer.token("ann", lives_seconds=3.0)

    token_hook.answers = short_lived
    way = secured.way("SASL_SSL/OAUTHBEARER")
    with RunningMirror(log, way.bootstrap_servers, way.settings) as mirror:
        while len(given) < 4:
            publish(log, topic, 20)
            mirror.caught_up(topic)
    there = read_all(secured.plain.bootstrap_servers, topic)
    assert there == read_log(log, topic)
    assert given[-1] - given[0] > 3.0
