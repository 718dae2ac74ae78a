"""`duolog audit` on a real Kafka: equal says equal, and each kind of damage is found."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from duolog.bridge.kafka.audit import AuditReport, Finding, audit
from duolog.bridge.kafka.feed.filters import GroupFilter
from duolog.errors import KafkaUnreachable, NothingToAudit
from duolog.log.mirror_model import Run, Skip, SkipReason
from duolog.log.model import Retention, TopicSettings
from tests.support.audited import GROUP, TOPIC, Audited, InKafka, records
from tests.support.kafka import DEADLINE_SECONDS, Kafka

COUNT = 300
GROUPS = GroupFilter.of(GROUP)  # the broker has groups of other tests


@dataclass
class Plan:
    """What lies in Kafka, and what the log believes of it; a test spoils one of them."""

    sent: list[InKafka]
    runs: dict[int, list[Run]]
    skips: dict[int, list[Skip]] = field(default_factory=dict)
    topic_id: str | None = None
    kafka_position: int | None = 120
    afterwards: Callable[[Audited], None] = lambda mirrored: None


def whole() -> Plan:
    """Two partitions, mirrored without a fault."""
    sent = [InKafka.of(record, p) for p in range(2) for record in records(COUNT, p)]
    return Plan(sent, {partition: [Run(0, 0, COUNT)] for partition in range(2)})


def carried_out(plan: Plan, mirrored: Audited) -> None:
    mirrored.publish([records(COUNT, partition) for partition in range(2)])
    mirrored.send(plan.sent)
    for partition, runs in plan.runs.items():
        mirrored.remember(partition, runs, plan.skips.get(partition, ()), topic_id=plan.topic_id)
    mirrored.log.seek(GROUP, TOPIC, 0, 120)
    if plan.kafka_position is not None:
        mirrored.commit(GROUP, 0, plan.kafka_position)
    plan.afterwards(mirrored)


@pytest.fixture
def mirrored(tmp_path: Path, kafka: Kafka) -> Iterator[Audited]:
    made = Audited(tmp_path / "log", kafka)
    try:
        yield made
    finally:
        made.forget_group(GROUP)
        made.log.close()


def audited(mirrored: Audited, sample: int | None = None) -> AuditReport:
    settings = {"bootstrap.servers": mirrored.kafka.bootstrap_servers}
    return audit(mirrored.log, settings, sample=sample, groups=GROUPS)


def findings(report: AuditReport) -> set[Finding]:
    return {finding for partition in report.partitions for finding in partition.counts}


@pytest.mark.parametrize("sample", [None, 150])
def test_equal_sides_are_equal(mirrored: Audited, sample: int | None) -> None:
    carried_out(whole(), mirrored)
    report = audited(mirrored, sample)
    assert report.is_equal, report.as_json()
    assert report.compared == (2 * COUNT if sample is None else 400)
    (position,) = report.positions
    assert (position.position, position.kafka_position, position.is_equal) == (120, 120, True)


def test_holes_skips_and_what_is_pending_are_counted_and_equal(mirrored: Audited) -> None:
    plan = whole()
    ours = [each for each in plan.sent if each.partition == 0]
    foreign = InKafka(0, 5, b"theirs", b"theirs")
    plan.sent = [*ours[:100], foreign, foreign, *ours[101:250]]
    plan.runs[0] = [Run(0, 0, 100), Run(101, 102, 149, skipped_before=1)]
    plan.skips[0] = [Skip(100, 1, SkipReason.TOO_LARGE)]
    plan.runs[1] = []
    plan.kafka_position = 121
    carried_out(plan, mirrored)
    report = audited(mirrored)
    assert report.is_equal, report.as_json()
    first, second = report.partitions
    assert (first.compared, first.pending, first.skipped, first.foreign) == (249, 50, 1, 2)
    assert (second.compared, second.pending) == (0, COUNT)


# -- damage. Each takes a plan without fault and spoils it.


def a_value(plan: Plan) -> None:
    plan.sent[17] = dataclasses.replace(plan.sent[17], value=b"other")


def a_key(plan: Plan) -> None:
    plan.sent[17] = dataclasses.replace(plan.sent[17], key=None)


def a_header(plan: Plan) -> None:
    plan.sent[18] = dataclasses.replace(plan.sent[18], headers=(("trace", b"18"),))


def a_timestamp(plan: Plan) -> None:
    plan.sent[17] = dataclasses.replace(plan.sent[17], ts_ms=plan.sent[17].ts_ms + 1)


def two_swapped(plan: Plan) -> None:
    plan.sent[17], plan.sent[18] = plan.sent[18], plan.sent[17]


def one_left_out(plan: Plan) -> None:
    del plan.sent[17]


def one_twice(plan: Plan) -> None:
    plan.sent.append(plan.sent[17])


def the_other_partition(plan: Plan) -> None:
    plan.sent = [dataclasses.replace(each, partition=1 - each.partition) for each in plan.sent]


def topic_made_anew(plan: Plan) -> None:
    plan.topic_id = "AAAAAAAAAAAAAAAAAAAAAA"


def start_moved_in_kafka(plan: Plan) -> None:
    def cut(mirrored: Audited) -> None:
        from confluent_kafka import TopicPartition

        place = TopicPartition(mirrored.kafka_topic, 0, 10)
        (asked,) = mirrored.admin.delete_records([place]).values()
        asked.result(DEADLINE_SECONDS)

    plan.afterwards = cut


def a_run_too_few(plan: Plan) -> None:
    plan.runs[1] = [Run(0, 0, 100), Run(150, 150, COUNT - 150)]


def a_run_too_long(plan: Plan) -> None:
    plan.runs[1] = [Run(0, 0, COUNT + 1)]


def a_partition_more(plan: Plan) -> None:
    def grow(mirrored: Audited) -> None:
        from confluent_kafka.cimpl import NewPartitions

        wanted = [NewPartitions(mirrored.kafka_topic, 3)]
        (asked,) = mirrored.admin.create_partitions(wanted).values()
        asked.result(DEADLINE_SECONDS)

    plan.afterwards = grow


def a_partition_without_mirror(plan: Plan) -> None:
    del plan.runs[1]


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (a_value, {Finding.VALUE_DIFFERS}),
        (a_key, {Finding.KEY_DIFFERS}),
        (a_header, {Finding.HEADERS_DIFFER}),
        (a_timestamp, {Finding.TIME_DIFFERS}),
        (
            two_swapped,
            {
                Finding.VALUE_DIFFERS,
                Finding.KEY_DIFFERS,
                Finding.TIME_DIFFERS,
                Finding.HEADERS_DIFFER,
            },
        ),
        (
            one_left_out,
            {
                Finding.VALUE_DIFFERS,
                Finding.KEY_DIFFERS,
                Finding.TIME_DIFFERS,
                Finding.HEADERS_DIFFER,
                Finding.RUN_BEYOND_KAFKA,
            },
        ),
        (one_twice, {Finding.COPY_IN_KAFKA}),
        (the_other_partition, {Finding.VALUE_DIFFERS}),
        (topic_made_anew, {Finding.OTHER_TOPIC}),
        (start_moved_in_kafka, {Finding.MISSING_IN_KAFKA}),
        (a_run_too_few, {Finding.NOT_ACCOUNTED_FOR, Finding.COPY_IN_KAFKA}),
        (a_run_too_long, {Finding.RUN_BEYOND_KAFKA, Finding.RUN_BEYOND_LOG}),
        (a_partition_more, {Finding.PARTITIONS_DIFFER}),
        (a_partition_without_mirror, {Finding.NOT_MIRRORED}),
    ],
)
def test_damage_is_found(
    mirrored: Audited, damage: Callable[[Plan], None], expected: set[Finding]
) -> None:
    plan = whole()
    damage(plan)
    carried_out(plan, mirrored)
    report = audited(mirrored)
    assert not report.is_equal
    assert findings(report) == expected


@pytest.mark.parametrize("there", [119, 121, 0, None])
def test_positions_that_differ_are_found(mirrored: Audited, there: int | None) -> None:
    plan = whole()
    plan.kafka_position = there
    carried_out(plan, mirrored)
    report = audited(mirrored)
    (position,) = report.positions
    assert (report.is_equal, position.kafka_position, position.expected) == (False, there, 120)
    assert findings(report) == set()


def test_a_group_that_only_kafka_knows_is_found_unless_it_is_excluded(mirrored: Audited) -> None:
    carried_out(whole(), mirrored)
    mirrored.log.delete_group(GROUP)
    assert [each.is_equal for each in audited(mirrored).positions] == [False]
    settings = {"bootstrap.servers": mirrored.kafka.bootstrap_servers}
    report = audit(mirrored.log, settings, groups=GroupFilter.of("other"))
    assert (report.positions, report.is_equal) == ((), True)


def test_what_retention_took_from_the_log_alone_is_not_compared(mirrored: Audited) -> None:
    carried_out(whole(), mirrored)
    mirrored.log.set_retention(TOPIC, Retention(seconds=1))
    mirrored.log.enforce_retention()
    assert mirrored.log.offsets(TOPIC)[0].start == COUNT
    report = audited(mirrored)
    assert (report.compared, report.is_equal) == (0, True)
    assert [each.not_comparable for each in report.partitions] == [COUNT, COUNT]


def test_a_log_without_a_mirror_is_told_so(mirrored: Audited) -> None:
    with pytest.raises(NothingToAudit, match="No topic of this log has a mirror"):
        audited(mirrored)
    carried_out(whole(), mirrored)
    mirrored.log.create_topic("other", TopicSettings())
    settings = {"bootstrap.servers": mirrored.kafka.bootstrap_servers}
    with pytest.raises(NothingToAudit, match="Topic other has no mirror"):
        audit(mirrored.log, settings, topics=["other"])


def test_a_broker_that_does_not_answer_is_told_so(mirrored: Audited) -> None:
    mirrored.remember(0, [])
    with pytest.raises(KafkaUnreachable, match="did not answer"):
        audit(mirrored.log, {"bootstrap.servers": "127.0.0.1:9"}, deadline_seconds=0.5)
