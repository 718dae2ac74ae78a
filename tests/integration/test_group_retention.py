"""Groups that nobody uses any more go on both sides, through `duolog serve` and a Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from duolog.reach import reach
from tests.support.handing_over import PARTITIONS, Mirrored, wait_until
from tests.support.kafka import Kafka


@pytest.fixture
def mirrored(tmp_path: Path, kafka: Kafka) -> Iterator[Mirrored]:
    """A host that forgets groups after four seconds without use."""
    (tmp_path / "duolog.toml").write_text(
        "[serve]\nretention_every_seconds = 0.2\ngroup_retention_seconds = 4\n"
    )
    with Mirrored(tmp_path / "log", kafka) as made:
        made.publish_and_mirror(200)
        yield made


def known(mirrored: Mirrored, group: str) -> dict[int, int]:
    """Without asking for one position, which would be a use."""
    with reach(mirrored.folder) as log:
        return {each.partition: each.position for each in log.group_positions(group)}


def test_an_unused_group_goes_on_both_sides_and_one_with_members_in_kafka_stays(
    mirrored: Mirrored, kafka: Kafka
) -> None:
    used, idle = mirrored.group, kafka.new_group()
    with mirrored.member() as reader:
        mirrored.commit(reader, 5)
        wait_until(lambda: known(mirrored, used).get(0) == 5, "follow")
        mirrored.group = idle
        for partition in range(PARTITIONS):
            mirrored.ack(9, partition, wait="settled")
        wait_until(lambda: known(mirrored, idle) == {}, "be forgotten")
        for partition in range(PARTITIONS):
            assert mirrored.in_kafka(partition) is None
        assert known(mirrored, used)[0] == 5
        mirrored.group = used
        assert mirrored.in_kafka() == 5
        mirrored.group = idle
        assert mirrored.poll(1, partition_id=0)["messages"][0]["offset"] == 0  # it begins anew
    mirrored.group = used
    wait_until(lambda: known(mirrored, used) == {}, "be forgotten")
    assert mirrored.in_kafka() is None
    wait_until(lambda: mirrored.metric("duolog_consumergroups_expired_total") >= 2, "be counted")
