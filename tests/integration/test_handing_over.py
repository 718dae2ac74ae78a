"""One group, taken over from one side to the other: exactly, through `duolog serve` and a Kafka."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from duolog import Consumer
from duolog.errors import (
    GroupHasMembers,
    KafkaWorkerUnavailable,
    NotSettled,
    UnknownGroup,
)
from duolog.log.model import Earliest
from duolog.reach import reach
from tests.support.groups import PROTOCOLS
from tests.support.handing_over import PARTITIONS, Mirrored, duolog, wait_until
from tests.support.kafka import DEADLINE_SECONDS, Kafka


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, kafka: Kafka) -> Iterator[Mirrored]:
    with Mirrored(tmp_path_factory.mktemp("turns") / "log", kafka) as made:
        made.publish_and_mirror(200)
        yield made


@pytest.fixture
def mirrored(served: Mirrored, kafka: Kafka) -> Mirrored:
    """A group that no other test has."""
    served.group = kafka.new_group()
    return served


def test_an_ack_waits_until_kafka_is_there_too(mirrored: Mirrored) -> None:
    answer = mirrored.ack(9, wait="settled")
    assert answer.pop("topic_id") > 0
    assert answer == {
        "success": True, "acknowledged_offset": 9, "settled": True, "pending": None,
    }  # fmt: skip
    assert mirrored.in_kafka() == 10
    with mirrored.member():
        waited = mirrored.ack(14, wait="settled", timeout_seconds=0.3)
        assert waited["settled"] is False
        assert "has members in Kafka" in waited["pending"]
        assert (mirrored.native(), mirrored.in_kafka()) == (15, 10)
    assert mirrored.ack(14, wait="settled")["settled"] is True
    assert mirrored.in_kafka() == 15


def test_a_kafka_consumer_begins_where_native_ones_of_its_group_have_begun(
    mirrored: Mirrored,
) -> None:
    begins = {str(partition): 40 + partition for partition in range(PARTITIONS)}
    polled = mirrored.poll(1, start={"Offsets": begins})
    assert "unsettled" not in polled
    places = range(PARTITIONS)
    wait_until(
        lambda: [mirrored.in_kafka(at) for at in places] == [40 + at for at in places],
        "learn of it",
    )
    taken = mirrored.kafka_turn(4 * 50 - sum(begins.values()))
    assert min(taken) == (0, 40)
    assert len(taken) == 4 * 50 - sum(begins.values())
    again = mirrored.poll(1, start="Earliest")
    assert again["messages"] == []


def test_the_command_line_and_sql_wait_as_well(mirrored: Mirrored) -> None:
    where = ("--group", mirrored.group, "--log", str(mirrored.folder), "--wait", "settled")
    done = duolog("ack", mirrored.topic, "--upto", "4", "--partition", "0", *where, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["settled"] is True
    assert mirrored.in_kafka() == 5
    sql = (
        f"ACK \"{mirrored.topic}\" GROUP '{mirrored.group}' PARTITION 0 UPTO OFFSET 6 WAIT SETTLED"
    )
    status, answer = mirrored.ask("sql", {"sql": sql})
    assert status == 200, answer
    row = dict(zip(answer["columns"], answer["rows"][0], strict=True))
    assert (row["settled"], row["pending"], row["position"]) == (True, None, 7)
    assert mirrored.in_kafka() == 7
    with mirrored.member():
        late = duolog(
            *("ack", mirrored.topic, "--upto", "9", "--partition", "0", *where, "--timeout", "0.2")
        )
        assert late.returncode == 1
        assert "NotSettled" in late.stderr or "members in Kafka" in late.stderr


def test_a_python_consumer_hands_over_when_it_closes(mirrored: Mirrored) -> None:
    options = {"url": mirrored.url, "group": mirrored.group, "start": "earliest"}
    consumer = Consumer({mirrored.topic: [0]}, max_records=7, **options)  # type: ignore[arg-type]
    assert len(consumer.poll(DEADLINE_SECONDS)) == 7
    consumer.ack(wait="settled")
    assert mirrored.in_kafka() == 7
    with mirrored.member():
        assert len(consumer.poll(DEADLINE_SECONDS)) == 7
        with pytest.raises(NotSettled, match="members in Kafka"):
            consumer.ack(wait="settled", timeout_seconds=0.2)
    consumer.close(wait="settled")
    consumer.close(wait="settled")
    assert mirrored.in_kafka() == 14
    first = mirrored.kafka_turn(1000)
    assert (0, 14) in first
    assert (0, 13) not in first


def test_a_consumer_that_goes_on_polling_asks_kafka_once(mirrored: Mirrored) -> None:
    with mirrored.member() as reader:
        mirrored.commit(reader, 30)
    first = mirrored.poll(1, partition_id=0)
    assert first["messages"][0]["offset"] == 30
    with mirrored.member() as reader:
        mirrored.commit(reader, 40)
    again = [mirrored.poll(1, partition_id=0)["next_offset"] for _ in range(20)]
    assert set(again) <= {31, 41}  # by the feed, which lags a little


def test_a_reset_is_refused_while_kafka_has_members_and_done_on_both_sides_else(
    mirrored: Mirrored,
) -> None:
    sql = f"RESET CONSUMER GROUP '{mirrored.group}' ON \"{mirrored.topic}\" PARTITION 0 TO 3"
    mirrored.ack(29, wait="settled")
    with mirrored.member() as reader:
        with reach(mirrored.folder) as log, pytest.raises(GroupHasMembers):
            log.seek(mirrored.group, mirrored.topic, 0, 5)
        status, answer = mirrored.ask("sql", {"sql": sql})
        assert (status, answer["code"]) == (409, "GroupHasMembers")
        refused = duolog(
            *("group", "seek", mirrored.group, "--topic", mirrored.topic, "--to", "start"),
            *("--partition", "0", "--log", str(mirrored.folder)),
        )
        assert refused.returncode == 1
        assert "Stop its consumers" in refused.stderr
        assert (mirrored.native(), mirrored.in_kafka()) == (30, 30)
        mirrored.commit(reader, 31)
    wait_until(lambda: mirrored.native() == 31, "follow")
    status, answer = mirrored.ask("sql", {"sql": sql})
    assert status == 200, answer
    assert (mirrored.native(), mirrored.in_kafka()) == (3, 3)
    with reach(mirrored.folder) as log:
        moved = log.seek(mirrored.group, mirrored.topic, 0, 12)
        assert moved.position == 12
    assert (mirrored.native(), mirrored.in_kafka()) == (12, 12)
    assert mirrored.poll(1, partition_id=0)["messages"][0]["offset"] == 12


def test_a_group_is_deleted_on_both_sides(mirrored: Mirrored) -> None:
    for partition in range(PARTITIONS):
        mirrored.ack(9, partition, wait="settled")
    where = ("--log", str(mirrored.folder))
    with mirrored.member():
        refused = duolog("group", "delete", mirrored.group, "--yes", *where)
        assert refused.returncode == 1
        assert "Stop its consumers" in refused.stderr
        assert (mirrored.native(), mirrored.in_kafka()) == (10, 10)
    deleted = duolog("group", "delete", mirrored.group, "--yes", *where, "--json")
    assert deleted.returncode == 0, deleted.stderr
    assert json.loads(deleted.stdout)["positions_deleted"] == PARTITIONS
    for _ in range(20):  # it does not come back with what the worker looks at then
        assert mirrored.poll(1, partition_id=0)["messages"][0]["offset"] == 0
    assert mirrored.native(0) == 0  # where these polls began
    for partition in range(1, PARTITIONS):
        assert (mirrored.native(partition), mirrored.in_kafka(partition)) == (None, None)
    with reach(mirrored.folder) as log:
        assert log.delete_group(mirrored.group) == 1
        with pytest.raises(UnknownGroup):
            log.delete_group(mirrored.group)
    assert mirrored.in_kafka(0) is None


def test_a_group_that_only_kafka_knows_is_deleted_there(mirrored: Mirrored) -> None:
    with mirrored.member() as reader:
        mirrored.commit(reader, 5)
    with reach(mirrored.folder) as log:
        log.delete_group(mirrored.group)
    assert (mirrored.native(), mirrored.in_kafka()) == (None, None)


def test_a_static_member_holds_a_group_until_its_session_ends(mirrored: Mirrored) -> None:
    with mirrored.member(**PROTOCOLS["static"]) as reader:
        mirrored.commit(reader, 20)
    # It has closed, and Kafka counts it as a member for the rest of its session.
    assert mirrored.poll(1, partition_id=0)["messages"][0]["offset"] == 20
    with reach(mirrored.folder) as log:
        with pytest.raises(GroupHasMembers, match="until its session ends"):
            log.seek(mirrored.group, mirrored.topic, 0, 0)
        with pytest.raises(GroupHasMembers):
            log.delete_group(mirrored.group)
    assert mirrored.ack(24, wait="settled", timeout_seconds=0)["settled"] is False
    assert mirrored.ack(24, wait="settled", timeout_seconds=DEADLINE_SECONDS)["settled"] is True
    assert mirrored.in_kafka() == 25


def test_a_worker_that_is_killed_in_the_middle_leaves_both_sides_at_one_place(
    mirrored: Mirrored,
) -> None:
    mirrored.ack(19, wait="settled")
    with reach(mirrored.folder) as log:
        for move in (
            lambda: log.seek(mirrored.group, mirrored.topic, 0, 4),
            lambda: log.delete_group(mirrored.group, mirrored.topic),
        ):
            killing = threading.Thread(target=mirrored.kill_worker)
            killing.start()
            with suppress(KafkaWorkerUnavailable):
                move()
            killing.join()
            settled = mirrored.ack(19, wait="settled", timeout_seconds=DEADLINE_SECONDS)
            assert settled["settled"], settled
            assert (mirrored.native(), mirrored.in_kafka()) == (20, 20)


def test_without_a_worker_a_move_is_refused_by_name_and_a_poll_goes_on(mirrored: Mirrored) -> None:
    mirrored.ack(19, wait="settled")
    mirrored.kill_worker()
    with reach(mirrored.folder) as log:
        wait_until(lambda: _is_refused(mirrored, 7), "notice that it has no worker")
        answer = mirrored.poll(1, partition_id=0)
        assert answer["messages"][0]["offset"] == 20
        assert "cannot be asked" in answer["unsettled"]
        assert log.group_position(mirrored.group, mirrored.topic, 1) is None
    wait_until(lambda: not _is_refused(mirrored, 7), "be moved when it is sent again")
    assert (mirrored.native(), mirrored.in_kafka()) == (7, 7)


def _is_refused(mirrored: Mirrored, position: int) -> bool:
    with reach(mirrored.folder) as log:
        try:
            assert log.seek(mirrored.group, mirrored.topic, 0, position).position == position
        except KafkaWorkerUnavailable:
            return True
    return False


def test_a_worker_that_is_stopped_delays_a_first_poll_and_no_more(mirrored: Mirrored) -> None:
    mirrored.ack(9, wait="settled")
    wait_until(lambda: mirrored.worker() is not None, "have a worker")
    worker = mirrored.worker()
    assert worker is not None
    before = mirrored.metric("duolog_polls_unsettled_total")
    worker.suspend()
    try:
        answer = mirrored.poll(1, partition_id=0)
        assert answer["messages"][0]["offset"] == 10
        assert "did not answer" in answer["unsettled"]
        assert mirrored.metric("duolog_polls_unsettled_total") == before + 1
        with reach(mirrored.folder) as log:
            assert log.resolve(mirrored.topic, 0, Earliest()) == 0  # the host is not held up
    finally:
        worker.resume()
    assert mirrored.ack(9, wait="settled", timeout_seconds=DEADLINE_SECONDS)["settled"] is True
