"""A group that is moved on both sides at random, and an oracle that says where it may come to.

The oracle knows nothing of runs or of who saw what: it keeps the furthest place that was
acknowledged and never taken back, and the furthest that may be passed over. Where one move is made
at a time, or all go forward, these are one place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, TopicPartition

from duolog.log.mirror_model import Run
from duolog.log.model import GroupPosition
from tests.drills.mirror.judging import FOREIGN
from tests.drills.mirror.scene import Scene
from tests.support.groups import commit, consumer, member, until
from tests.support.kafka import DEADLINE_SECONDS
from tests.support.kafka_damage import delete_records, write_as_another

_OVERSIZED = b"too much " * 1000
_BEYOND = 50
_NOT_EMPTY_YET = {14, 15, 16, 25, 68}  # Kafka's numbers: it loads, or somebody has just left


def behind(runs: Sequence[Run], position: int) -> int:
    """The place behind the last mirrored record before a log position."""
    ends = (min(position, run.next_log_offset) for run in runs if run.first_log_offset < position)
    return max(ends, default=0)


def behind_in_kafka(runs: Sequence[Run], offset: int) -> int:
    """The same for a Kafka offset."""
    ends = (
        run.first_log_offset + min(run.count, offset - run.first_kafka_offset)
        for run in runs
        if run.first_kafka_offset < offset
    )
    return max(ends, default=0)


class Moves:
    """One group in the first partition of a scene's topic."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.chance = scene.chance
        self.group = scene.kafka.new_group()
        self.at = 0  # where both sides were when all was said
        self.left_within: list[float] = []  # how soon was written what waited for a member's end
        self._committed = 0  # the last commit of a consumer, as a log position
        self._admin = scene.kafka.admin()
        self._asking = Consumer(
            {
                "bootstrap.servers": scene.kafka.bootstrap_servers,
                "group.id": self.group,
                "log_level": 0,
            }
        )

    def close(self) -> None:
        self._asking.close()

    # -- both sides

    @property
    def native(self) -> int | None:
        return None if self._position is None else self._position.position

    @property
    def _position(self) -> GroupPosition | None:
        return self.scene.log.group_position(self.group, self.scene.topic, 0)

    @property
    def in_kafka(self) -> int | None:
        place = TopicPartition(self.scene.topic, 0)
        (known,) = self._asking.committed([place], timeout=DEADLINE_SECONDS)
        return None if known.offset < 0 else known.offset

    def comes_to(self, lowest: int, highest: int | None = None) -> None:
        """Wait until both sides rest at one place, which lies within these log positions."""
        highest = lowest if highest is None else highest
        self.scene.until(
            lambda: self._rests_between(lowest, highest),
            lambda: (
                f"bring {self.group} to {lowest}..{highest}: {self._position}, in Kafka "
                f"{self.in_kafka}, runs {self._runs}"
            ),
        )
        self.at = behind(self._runs, self.native or 0)
        self._committed = min(self._committed, self.at)

    def _rests_between(self, lowest: int, highest: int) -> bool:
        in_kafka, position = self.in_kafka, self._position
        mirror = self.scene.log.mirror(self.scene.topic, 0)
        if position is None or in_kafka is None or mirror is None:
            return False
        seen = position.kafka
        # Two moves on their way may pass each other, and both sides be at one place between them.
        if seen is None or seen.writing is not None or seen.held != in_kafka:
            return False
        if mirror.next_log_offset < max(position.position, highest):  # not mirrored yet: no place
            return False
        runs = mirror.runs
        place = behind(runs, position.position)
        is_one = place == behind_in_kafka(runs, in_kafka)
        return is_one and behind(runs, lowest) <= place <= behind(runs, highest)

    @property
    def _runs(self) -> Sequence[Run]:
        mirror = self.scene.log.mirror(self.scene.topic, 0)
        return () if mirror is None else mirror.runs

    # -- one move each; the log position that it stands for

    def acks(self) -> int:
        """Natively, forward."""
        head = self.scene.log.offsets(self.scene.topic)[0].next_offset
        position = self.chance.randint(self.at, head)
        if position > self.at:
            self.scene.log.ack(self.group, self.scene.topic, position - 1, partition=0)
        return position

    def commits(self, reader: Consumer | None = None) -> int:
        """In Kafka, forward: by a member, or by one that is none."""
        offset = self._offset(max(self.at, self._committed), behind(self._runs, 1 << 60))
        self._commit(offset, reader)
        self._committed = behind_in_kafka(self._runs, offset)
        return self._committed

    def _offset(self, lowest: int, highest: int) -> int:
        """The Kafka offset of some place behind a mirrored record; 0 when that is the start."""
        runs = self._runs
        position = behind(runs, self.chance.randint(lowest, max(lowest, highest)))
        return next(
            (
                position + run.difference
                for run in runs
                if run.first_log_offset < position <= run.next_log_offset
            ),
            0,
        )

    def _commit(self, offset: int, reader: Consumer | None) -> None:
        if reader is not None:
            commit(reader, self.scene.topic, offset)
            return
        with consumer(self.scene.kafka, self.group) as anybody:
            anybody.assign([TopicPartition(self.scene.topic, 0, 0)])
            commit(anybody, self.scene.topic, offset)

    # -- rounds: some moves, and where they lead

    def begins(self) -> None:
        """On both sides at once. What was written for the native one a consumer may take back."""
        moved = self.acks(), self.commits()
        self.comes_to(min(moved), max(moved))

    def forward(self) -> None:
        """Both sides go forward, several times; the furthest counts."""
        self.comes_to(max(self._several()))

    def _several(self) -> list[int]:
        moves = self.chance.choices((self.acks, self.commits), k=self.chance.randint(1, 3))
        return [self.at, *(move() for move in moves)]

    def forward_while_away(self) -> None:
        """The same under a kill, before or between the moves."""
        first = self._several() if self.chance.random() < 0.5 else [self.at]
        self.scene.kill_worker()
        then = self._several()
        self.scene.start_worker()
        self.comes_to(max(first + then))

    def back(self) -> None:
        """Natively, to do something again."""
        position = self.chance.randint(0, self.at)
        self.scene.log.seek(self.group, self.scene.topic, 0, position)
        self.comes_to(position)

    def back_in_kafka(self) -> None:
        """By Kafka's own tool, below what a consumer has committed: above, it is one of those that
        have not seen what was acknowledged natively."""
        known = min(self._committed, behind(self._runs, self.at))
        if known < 2:
            return
        offset = self._offset(1, known - 1)
        position = behind_in_kafka(self._runs, offset)
        if position >= known:
            return
        self._alter(offset)
        self._committed = position
        self.comes_to(position)

    def back_and_forward(self) -> None:
        """At once: who was first, nobody can say."""
        position = self.chance.randint(0, self.at)
        self.scene.log.seek(self.group, self.scene.topic, 0, position)
        self.comes_to(position, max(self.at, self.commits()))
        self._committed = min(self._committed, position)  # Kafka may have held it for a moment

    def forgotten_in_kafka(self) -> None:
        """As when it expires: nothing is taken back."""
        self._when_empty(
            lambda: self._admin.delete_consumer_groups([self.group])[self.group].result()
        )
        self._committed = 0
        self.comes_to(self.at)

    def with_members(self) -> None:
        """While a group has members nobody but they move it in Kafka; then it comes at once."""
        with member(self.scene.kafka, self.group, self.scene.topic) as joined:
            furthest = max(self.at, self.commits(joined))
            self.comes_to(furthest)
            held = self.in_kafka
            furthest = max(furthest, self.acks())
            self.scene.pass_time(self.chance.random())
            assert self.in_kafka == held, "a live group was moved"
            if self.chance.random() < 0.5:
                furthest = max(furthest, self.commits(joined))
        began = time.monotonic()
        self.comes_to(furthest)
        self.left_within.append(time.monotonic() - began)

    def beyond_the_end(self) -> None:
        """It waits for what is not there yet, and is not clamped."""
        mirror = self.scene.log.mirror(self.scene.topic, 0)
        assert mirror is not None
        offset = mirror.next_kafka_offset + _BEYOND
        self._commit(offset, None)
        self.scene.until(lambda: self._reaches(offset), f"mirror up to {offset}")
        self._committed = behind_in_kafka(self._runs, offset)
        self.comes_to(max(self.at, self._committed))

    def _reaches(self, offset: int) -> bool:
        return any(run.next_kafka_offset > offset for run in self._runs)

    def holes(self) -> None:
        """Records that only one side has: neither moves."""
        servers, topic = self.scene.kafka.bootstrap_servers, self.scene.topic
        write_as_another(servers, topic, [FOREIGN] * self.chance.randint(1, 5))
        good = [self.scene.written.good(0) for _ in range(3)]
        self.scene.written.publish([good[0], replace(good[1], value=_OVERSIZED), good[2]])
        self.comes_to(self.at)

    def deleted_in_kafka(self) -> None:
        """Kafka keeps less than the log, and less than the group has read: it skips nothing."""
        servers, topic = self.scene.kafka.bootstrap_servers, self.scene.topic
        start, end = self.scene.edges(0)
        delete_records(servers, topic, 0, self.chance.randint(start, end))
        self.comes_to(self.at)

    def _alter(self, offset: int) -> None:
        wanted = [TopicPartition(self.scene.topic, 0, offset)]

        def once() -> object:
            asked = [ConsumerGroupTopicPartitions(self.group, wanted)]
            (done,) = self._admin.alter_consumer_group_offsets(asked).values()
            for each in done.result(DEADLINE_SECONDS).topic_partitions:
                if each.error is not None:
                    raise KafkaException(each.error)
            return done

        self._when_empty(once)

    def _when_empty(self, once: Callable[[], object]) -> None:
        """Kafka does it when it has noticed that a member is gone."""

        def is_done() -> bool:
            try:
                once()
            except KafkaException as failure:
                if failure.args[0].code() not in _NOT_EMPTY_YET:
                    raise
                return False
            return True

        until(is_done, "do it")
