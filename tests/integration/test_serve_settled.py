"""`wait: settled` at a host without a Kafka, and with one that cannot be reached."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest

from duolog import Consumer
from duolog.bridge.journal import Journal
from duolog.bridge.serve.asking import Asking
from duolog.errors import InvalidRequest, KafkaWorkerUnavailable
from duolog.log.mirror_model import MirrorTarget
from tests.integration.serve_host import ServedLog, served

ACK = "/v1/api/topics/ack"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedLog]:
    with served(tmp_path_factory.mktemp("served") / "log") as running:
        yield running


@pytest.fixture
def topic(host: ServedLog, request: pytest.FixtureRequest) -> str:
    name = str(request.node.name)[:200]
    host.log.create_topic(name)
    assert host.publish(name, *map(str, range(5))).status == 200
    return name


def mirror(host: ServedLog, topic: str) -> None:
    host.log.begin_mirror(topic, 0, MirrorTarget("cluster", topic, "id", 1, 0, 0, 0))


@pytest.fixture
def away(host: ServedLog) -> Iterator[None]:
    """The host has a worker that does not run."""
    host.host.kafka_worker = Asking("kafka", Journal(io.StringIO()))
    yield
    host.host.kafka_worker = None


def test_without_a_mirror_an_ack_is_settled_at_once(host: ServedLog, topic: str) -> None:
    asked = {"topic": topic, "group_id": "g", "upto_offset": 2, "wait": "settled"}
    answer = host.ask(ACK, asked)
    assert answer.json == {
        "success": True, "topic_id": host.log.topic(topic).id, "acknowledged_offset": 2,
        "settled": True, "pending": None,
    }  # fmt: skip
    with Consumer(topic, url=host.url, group="g", start="earliest") as consumer:
        assert len(consumer.poll()) == 2
        consumer.ack(wait="settled")
        for wait, seconds in (("forever", 1), ("settled", -1), ("settled", 1e9)):
            with pytest.raises(InvalidRequest):
                consumer.ack(wait=wait, timeout_seconds=seconds)


def test_an_ack_says_what_is_pending_where_nobody_mirrors_what_was_mirrored(
    host: ServedLog, topic: str
) -> None:
    mirror(host, topic)
    asked = {"topic": topic, "group_id": "g", "upto_offset": 2, "wait": "settled"}
    answer = host.ask(ACK, asked).json
    assert (answer["success"], answer["settled"]) == (True, False)
    assert "no host mirrors" in answer["pending"]


@pytest.mark.usefixtures("away")
def test_an_ack_is_durable_whatever_its_wait_comes_to(host: ServedLog, topic: str) -> None:
    mirror(host, topic)
    asked = {"topic": topic, "group_id": "g", "upto_offset": 2, "wait": "settled"}
    answer = host.ask(ACK, {**asked, "timeout_seconds": 0.3}).json
    assert (answer["success"], answer["settled"]) == (True, False)
    assert "cannot be asked" in answer["pending"]
    position = host.log.group_position("g", topic, 0)
    assert position is not None
    assert position.position == 3


@pytest.mark.usefixtures("away")
def test_a_first_poll_goes_on_and_says_that_kafka_was_not_heard(
    host: ServedLog, topic: str
) -> None:
    mirror(host, topic)
    host.log.ack("g", topic, 0)
    before = host.metric("duolog_polls_unsettled_total")
    for wanted in ({}, {"headers": {"Accept": "application/vnd.apache.arrow.stream"}}):
        asked = {"topic": topic, "group_id": f"g{len(wanted)}", "start": "Earliest"}
        answer = host.ask("/v1/api/topics/consume", asked, **wanted)  # type: ignore[arg-type]
        assert answer.status == 200
        assert b"unsettled" in answer.body
        assert b"cannot be asked" in answer.body
    again = host.ask("/v1/api/topics/consume", {**asked, "timeout_seconds": 0})
    assert "unsettled" not in again.json
    assert host.consume(topic=topic, start="Earliest").json["messages"]
    assert host.metric("duolog_polls_unsettled_total") == before + 2
    assert host.said.getvalue().count("polls.unsettled") == 1


@pytest.mark.usefixtures("away")
def test_a_move_is_refused_by_name_and_changes_nothing(host: ServedLog, topic: str) -> None:
    mirror(host, topic)
    host.log.ack("g", topic, 2)
    sql = f"RESET CONSUMER GROUP 'g' ON \"{topic}\" TO 0"
    refused = host.ask("/v1/api/sql", {"sql": sql})
    assert (refused.status, refused.code) == (503, "KafkaWorkerUnavailable")
    assert "retry-after" in refused.headers
    with pytest.raises(KafkaWorkerUnavailable):
        host.host.groups.delete_group("g")
    position = host.log.group_position("g", topic, 0)
    assert position is not None
    assert position.position == 3


@pytest.mark.usefixtures("away")
def test_what_is_not_mirrored_is_moved_all_the_same(host: ServedLog, topic: str) -> None:
    host.log.ack("g", topic, 2)
    done = host.ask("/v1/api/sql", {"sql": f"RESET CONSUMER GROUP 'g' ON \"{topic}\" TO 0"})
    assert done.status == 200
    assert host.host.groups.delete_group("g", topic) == 1


@pytest.mark.parametrize(
    "more",
    [{"wait": "forever"}, {"timeout_seconds": 1}, {"wait": "settled", "timeout_seconds": -1}],
)
def test_a_wait_that_cannot_be_is_refused(host: ServedLog, more: dict[str, object]) -> None:
    asked = {"topic": "any", "group_id": "g", "upto_offset": 2, **more}
    assert host.ask(ACK, asked).status == 422
