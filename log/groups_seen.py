"""What a group's position was last seen at in Kafka, as plain values that the log keeps.

Which of it means what is decided where Kafka is known; the log only stores it with the position.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KafkaWrite:
    """A commit of ours that is on its way: whether it came there is not known yet.

    `nonce` is in the commit's metadata. `based_on` is what Kafka held when it was decided. What was
    committed from `feed_from` on may have been written over: that is an offset in the group's
    partition of `__consumer_offsets`, None where that is not read. `floor_before` is the floor that
    consumers went by then.
    """

    nonce: str
    offset: int
    based_on: int | None = None
    feed_from: int | None = None
    floor_before: int | None = None


@dataclass(frozen=True, slots=True)
class KafkaSeen:
    """Kafka's side of one group and partition, in Kafka offsets.

    `foreign` is the last commit that was not ours, `ours` our last one for as long as Kafka holds
    it. `floor` is the lowest place that a Kafka consumer may rightly go on from: its own last
    commit, or a later and lower one of ours; a commit below it is a rewind.
    """

    foreign: int | None = None
    ours: int | None = None
    floor: int | None = None
    one_way: bool = False  # commits carry metadata of their own: nothing is written there
    conflicts: int = 0  # commits by consumers that had not seen ours
    writing: KafkaWrite | None = None

    @property
    def held(self) -> int | None:
        """What Kafka was last seen to hold, whoever committed it."""
        return self.foreign if self.ours is None else self.ours
