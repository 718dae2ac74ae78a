"""The audit of a log and its mirror, from beginning to end."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from duolog.bridge.kafka.access import client_of
from duolog.bridge.kafka.audit.groups import (
    answer,
    kafka_groups,
    kafka_positions,
    native_positions,
    positions_report,
)
from duolog.bridge.kafka.audit.kafka_reader import DEADLINE_SECONDS, KafkaReader
from duolog.bridge.kafka.audit.partition import Advance, PartitionAudit
from duolog.bridge.kafka.audit.report import (
    AuditReport,
    Difference,
    Finding,
    PartitionReport,
)
from duolog.bridge.kafka.feed.filters import GroupFilter
from duolog.errors import KafkaUnreachable, NothingToAudit

if TYPE_CHECKING:
    from confluent_kafka import Uuid
    from confluent_kafka.admin import AdminClient

    from duolog.log import LogAccess
    from duolog.log.mirror_model import Mirror

_KAFKAS_ALPHABET = str.maketrans("+/", "-_")
_NO_SUCH_TOPIC = 3  # Kafka's number for it


class Watcher(Protocol):
    """Who wants to see how far it is."""

    def begins(self, records: int) -> Advance:
        """So many are to be compared; what is answered is told of each step."""


@dataclass(frozen=True, slots=True)
class _KafkaTopic:
    topic_id: str
    partitions: int


def audit(
    log: LogAccess,
    settings: Mapping[str, str],
    *,
    topics: Sequence[str] = (),
    sample: int | None = None,
    groups: GroupFilter | None = None,
    deadline_seconds: float = DEADLINE_SECONDS,
    watcher: Watcher | None = None,
) -> AuditReport:
    """Read both sides and compare them: all records, or a sample of about so many a partition.

    `settings` are librdkafka's; `groups` says which have one position on both sides. A log that is
    written to meanwhile is compared up to where it was.
    """
    from confluent_kafka.admin import AdminClient

    began = time.monotonic()
    mirrors = _mirrors(log, topics)
    with KafkaReader(settings, deadline_seconds=deadline_seconds) as reader:
        # After the reader, which says why when it is not let in.
        admin = client_of(AdminClient, settings)
        there = _kafka_topics(admin, mirrors, deadline_seconds)
        reports: list[PartitionReport] = []
        audits: list[PartitionAudit] = []
        for mirror in mirrors:
            wrong = _wrong_topic(mirror, there.get(mirror.target.kafka_topic))
            if wrong is not None:
                place = (mirror.topic, mirror.partition, mirror.target.kafka_topic)
                reports.append(_one_sided(place, *wrong))
            else:
                audits.append(PartitionAudit(log, reader, mirror, sample=sample))
        reports += _on_one_side(log, mirrors, there)
        advance = watcher.begins(sum(each.records for each in audits)) if watcher else _silent
        reports += [each.run(advance) for each in audits]
    takes = (groups or GroupFilter.of()).takes
    found = {
        place: position
        for place, position in native_positions(log, mirrors).items()
        if takes(place[0])
    }
    native = {place: each.position for place, each in found.items()}
    begun = {place for place, each in found.items() if each.is_first}
    known = {group for group, _, _ in native} | set(kafka_groups(admin, deadline_seconds))
    asked = sorted(filter(takes, known))
    kafka = kafka_positions(settings, mirrors, asked, deadline_seconds)
    return AuditReport(
        tuple(sorted(reports, key=lambda report: (report.topic, report.partition))),
        positions_report(mirrors, native, kafka, begun),
        sample,
        time.monotonic() - began,
    )


def _mirrors(log: LogAccess, topics: Sequence[str]) -> tuple[Mirror, ...]:
    named = {log.topic(topic).name for topic in topics}
    mirrors = tuple(mirror for mirror in log.mirrors() if not named or mirror.topic in named)
    missing = named - {mirror.topic for mirror in mirrors}
    if missing or not mirrors:
        what = f"Topic {', '.join(sorted(missing))}" if missing else "No topic of this log"
        raise NothingToAudit(
            f"{what} has {'no' if missing else 'a'} mirror in Kafka, so there is nothing to "
            "compare. `duolog serve --bootstrap-servers H:P` mirrors a log."
        )
    return mirrors


def _kafka_topics(
    admin: AdminClient, mirrors: Sequence[Mirror], deadline_seconds: float
) -> dict[str, _KafkaTopic]:
    from confluent_kafka import KafkaException, TopicCollection

    names = sorted({mirror.target.kafka_topic for mirror in mirrors})
    asked = admin.describe_topics(TopicCollection(names), request_timeout=deadline_seconds)
    there = {}
    for name in names:
        try:
            described = answer(asked[name], deadline_seconds)
        except KafkaUnreachable as failure:
            cause = failure.__cause__
            if isinstance(cause, KafkaException) and cause.args[0].code() == _NO_SUCH_TOPIC:
                continue
            raise
        there[name] = _KafkaTopic(_id_text(described.topic_id), len(described.partitions))
    return there


def _id_text(topic_id: Uuid) -> str:
    """As Kafka writes it; librdkafka's text has another alphabet."""
    return str(topic_id).translate(_KAFKAS_ALPHABET).rstrip("=")


def _wrong_topic(mirror: Mirror, there: _KafkaTopic | None) -> tuple[Finding, str] | None:
    name = mirror.target.kafka_topic
    if there is None:
        return Finding.OTHER_TOPIC, f"There is no topic {name} in Kafka any more."
    if there.topic_id != mirror.target.kafka_topic_id:
        return (
            Finding.OTHER_TOPIC,
            f"Kafka's topic {name} was deleted and made anew: its id is {there.topic_id}, and "
            f"the mirror's is {mirror.target.kafka_topic_id}.",
        )
    if mirror.partition >= there.partitions:
        return (
            Finding.PARTITIONS_DIFFER,
            f"Kafka's topic {name} has {there.partitions} partitions, and none of them is this.",
        )
    return None


def _on_one_side(
    log: LogAccess, mirrors: Sequence[Mirror], there: Mapping[str, _KafkaTopic]
) -> list[PartitionReport]:
    """Partitions that only one side has, of topics that have a mirror."""
    reports = []
    for topic in sorted({mirror.topic for mirror in mirrors}):
        mirrored = {mirror.partition: mirror for mirror in mirrors if mirror.topic == topic}
        kafka_topic = next(iter(mirrored.values())).target.kafka_topic
        ours = log.offsets(topic)
        reports += [
            _one_sided(
                (topic, offsets.partition, kafka_topic),
                Finding.NOT_MIRRORED,
                "The partition has records, and no mirror was begun.",
                pending=offsets.next_offset - offsets.start,
            )
            for offsets in ours
            if offsets.partition not in mirrored and offsets.next_offset > offsets.start
        ]
        theirs = there[kafka_topic].partitions if kafka_topic in there else 0
        reports += [
            _one_sided(
                (topic, partition, kafka_topic),
                Finding.PARTITIONS_DIFFER,
                f"Kafka's topic has {theirs} partitions, the log's {len(ours)}.",
            )
            for partition in range(len(ours), theirs)
        ]
    return reports


def _one_sided(
    place: tuple[str, int, str], finding: Finding, said: str, *, pending: int = 0
) -> PartitionReport:
    return PartitionReport(
        *place, pending=pending, differences=(Difference(finding, said),), counts={finding: 1}
    )


def _silent(_records: int) -> None:
    """Nobody watches."""
