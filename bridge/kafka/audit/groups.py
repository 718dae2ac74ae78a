"""Do both sides know one position of each group?

They do when as many of the mirrored records lie before the one as before the other. That says the
same as the translation that the bridge uses, and is counted here without it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from duolog.bridge.kafka.access import client_of
from duolog.bridge.kafka.audit.report import PositionReport
from duolog.errors import KafkaUnreachable
from duolog.log.mirror_model import Mirror, Run

if TYPE_CHECKING:
    from confluent_kafka.admin import AdminClient

    from duolog.log import LogAccess
    from duolog.log.model import GroupPosition

Place = tuple[str, str, int]
"""Group, the log's topic, partition."""


def before_in_log(runs: Sequence[Run], position: int) -> int:
    """How many mirrored records lie before a log position."""
    return sum(min(run.count, max(0, position - run.first_log_offset)) for run in runs)


def before_in_kafka(runs: Sequence[Run], kafka_offset: int) -> int:
    """How many mirrored records lie before a Kafka offset."""
    return sum(min(run.count, max(0, kafka_offset - run.first_kafka_offset)) for run in runs)


def kafka_offset_of(mirror: Mirror, position: int) -> int:
    """Where in Kafka the first mirrored record at or after a log position is; else the end."""
    for run in mirror.runs:
        if position < run.next_log_offset:
            return run.first_kafka_offset + max(0, position - run.first_log_offset)
    return mirror.next_kafka_offset


def positions_report(
    mirrors: Sequence[Mirror],
    native: Mapping[Place, int],
    kafka: Mapping[Place, int],
    begun: Collection[Place] = (),
) -> tuple[PositionReport, ...]:
    """Each group in each partition that either side knows it in. Pure.

    `begun`: of the native ones, those where nobody has acknowledged anything. Kafka learns of such
    a one as soon as the group has no members there; until then nothing is missing.
    """
    of_partition = {(mirror.topic, mirror.partition): mirror for mirror in mirrors}
    reports = []
    for group, topic, partition in sorted({*native, *kafka}):
        mirror = of_partition.get((topic, partition))
        if mirror is None:
            continue
        place = (group, topic, partition)
        position, kafka_position = native.get(place), kafka.get(place)
        if kafka_position is None and place in begun:
            continue
        is_equal = (
            position is not None
            and kafka_position is not None
            and before_in_log(mirror.runs, position) == before_in_kafka(mirror.runs, kafka_position)
        )
        expected = None if position is None else kafka_offset_of(mirror, position)
        reports.append(
            PositionReport(group, topic, partition, position, expected, kafka_position, is_equal)
        )
    return tuple(reports)


def native_positions(log: LogAccess, mirrors: Sequence[Mirror]) -> dict[Place, GroupPosition]:
    """What the log knows of the mirrored topics."""
    return {
        (known.group, known.topic, known.partition): known
        for topic in sorted({mirror.topic for mirror in mirrors})
        for known in log.group_positions(reference=topic)
    }


def kafka_positions(
    settings: Mapping[str, str],
    mirrors: Sequence[Mirror],
    groups: Sequence[str],
    deadline_seconds: float,
) -> dict[Place, int]:
    """What Kafka knows of these groups in the mirrored topics.

    A consumer of the group asks, which never joins it: the admin client of librdkafka ends the
    process when a coordinator has only just begun.
    """
    from confluent_kafka import Consumer, KafkaException, TopicPartition

    positions: dict[Place, int] = {}
    places = [TopicPartition(each.target.kafka_topic, each.partition) for each in mirrors]
    for group in groups:
        # Of open transactions it waits for the end: what is told is stable.
        consumer = client_of(
            Consumer,
            {**settings, "group.id": group, "isolation.level": "read_committed"}
            | {"enable.auto.commit": False},
        )
        try:
            known = consumer.committed(places, timeout=deadline_seconds)
        except KafkaException as failure:
            raise _unanswered(failure) from failure
        finally:
            consumer.close()
        for mirror, place in zip(mirrors, known, strict=True):
            if place.error is not None:
                raise _unanswered(place.error)
            if place.offset >= 0:
                positions[(group, mirror.topic, mirror.partition)] = place.offset
    return positions


def kafka_groups(admin: AdminClient, deadline_seconds: float) -> tuple[str, ...]:
    """All groups of the cluster that one may see."""
    asked = admin.list_consumer_groups(request_timeout=deadline_seconds)
    listed = answer(asked, deadline_seconds)
    return tuple(sorted(group.group_id for group in listed.valid))


def answer(asked: Any, deadline_seconds: float) -> Any:
    """What Kafka says to a request of the admin client; KafkaUnreachable when it does not."""
    from confluent_kafka import KafkaException

    try:
        return asked.result(deadline_seconds)
    except (KafkaException, TimeoutError) as failure:
        raise _unanswered(failure) from failure


def _unanswered(failure: object) -> KafkaUnreachable:
    return KafkaUnreachable(
        f"Kafka did not answer what the audit asked: {failure}. "
        "Look at the broker and at the rights of who asks, and start the audit again."
    )
