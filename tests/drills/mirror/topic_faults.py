"""What happens to a Kafka topic, or to the records for it, while it is being mirrored into.

Each is a function that breaks something, waits for what the mirror is to make of it, and mends it
as an operator would. Before and after, the writer goes on.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from duolog.bridge.kafka.mirror.restarting import restart
from duolog.log.model import Record
from tests.drills.mirror.judging import FOREIGN
from tests.drills.mirror.scene import Scene
from tests.support.kafka import admin_of
from tests.support.kafka_damage import (
    add_partitions,
    delete_records,
    delete_topic,
    set_topic,
    write_as_another,
)
from tests.support.mirror_runner import Read, read_all

SMALL = {"max.message.bytes": "8000"}
_OVERSIZED = b"too much " * 1000
_TWO_HOURS_MS = 7_200_000
_FUSE = 100


def is_oversized(read: Read) -> bool:
    return read.value == _OVERSIZED


def is_of_the_future(read: Read) -> bool:
    """Those that were written by the wrong clock; the drill takes less than an hour."""
    return read.ts_ms > time.time() * 1000 + _TWO_HOURS_MS / 2


def is_bad(read: Read) -> bool:
    return is_oversized(read) or is_of_the_future(read)


def made_anew(scene: Scene) -> None:
    """The topic is deleted and made again by somebody."""
    servers, topic = scene.kafka.bootstrap_servers, scene.topic
    delete_topic(servers, topic)
    _make_again(scene)
    scene.halts("KafkaTopicRecreated")
    in_the_new_one = [len(read_all(servers, topic, number)) for number in range(3)]
    assert in_the_new_one == [0, 0, 0]
    restart(scene.log, topic)
    scene.gets_on()


def _make_again(scene: Scene) -> None:
    """As soon as Kafka lets it: what is deleted goes away by and by."""
    admin, wanted = admin_of(scene.kafka.bootstrap_servers), NewTopic(scene.topic, 3, 1)
    scene.until(lambda: _is_made(admin, wanted), "let the topic be made again")


def _is_made(admin: AdminClient, wanted: NewTopic) -> bool:
    (made,) = admin.create_topics([wanted]).values()
    failure = made.exception()
    if failure is None:
        return True
    assert isinstance(failure, KafkaException)
    assert failure.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS, failure
    return False


def partitions_added(scene: Scene) -> None:
    """First here, then there."""
    scene.written.grow(4)
    scene.until(lambda: _is_mirrored(scene, 3), "mirror the new partition")
    add_partitions(scene.kafka.bootstrap_servers, scene.topic, 6)
    scene.kill_worker()
    scene.start_worker()
    scene.halts("KafkaTopicUnfit")
    scene.written.grow(6)
    scene.until(lambda: _is_mirrored(scene, 5), "mirror what Kafka had added")
    scene.gets_on()


def _is_mirrored(scene: Scene, partition: int) -> bool:
    mirror = scene.log.mirror(scene.topic, partition)
    return mirror is not None and bool(mirror.runs)


def others_write(scene: Scene) -> None:
    """Somebody else writes into the topic, while the mirror does and while it is away."""
    for is_away in (False, False, True):
        if is_away:
            scene.kill_worker()
        for partition in range(3):
            values = [FOREIGN + b"%d" % n for n in range(scene.chance.randint(1, 20))]
            write_as_another(scene.kafka.bootstrap_servers, scene.topic, values, partition)
        if is_away:
            scene.start_worker()
        scene.gets_on()


def kafka_deletes(scene: Scene) -> None:
    """Kafka's own retention takes records of which the mirror has yet to tell the log.

    The first time all of them; then only others' records are left at the end.
    """
    servers, topic = scene.kafka.bootstrap_servers, scene.topic
    for others_are_there in (False, True):
        scene.sends()
        scene.kill_worker()
        for partition in range(3):
            _, end = scene.edges(partition)
            if others_are_there:
                write_as_another(servers, topic, [FOREIGN] * 5, partition)
            delete_records(servers, topic, partition, end)
        scene.start_worker()
    scene.kill_worker()
    scene.start_worker(store_every_seconds=0.2)
    scene.gets_on()


def poison(scene: Scene) -> None:
    """Oversized records and such of the future among good ones, under kills."""
    for times in range(1, 4):
        for partition in range(3):
            scene.written.publish(list(_poisoned(scene, partition)))
        all_bad = 15 * times
        scene.until(partial(_have_set_aside, scene, all_bad), f"set {all_bad} bad ones aside")
        scene.pass_time(scene.chance.random() * 0.2)
        scene.kill_worker()
        scene.start_worker()
    scene.sends()
    scene.kill_worker()
    scene.start_worker(store_every_seconds=0.2)
    scene.gets_on()


def _have_set_aside(scene: Scene, records: int) -> bool:
    """Whether the topic for those that Kafka was not given has so many."""
    name = f"{scene.topic}.kafka-refused"
    if name not in {topic.name for topic in scene.log.topics()}:
        return False
    return scene.log.offsets(name)[0].next_offset >= records


def _poisoned(scene: Scene, partition: int) -> Iterator[Record]:
    for _ in range(5):
        for _ in range(scene.chance.randint(0, 10)):
            yield scene.written.good(partition)
        good = scene.written.good(partition)
        if scene.chance.random() < 0.5:
            yield replace(good, value=_OVERSIZED)
        else:
            yield replace(good, ts_ms=int(time.time() * 1000) + 2 * _TWO_HOURS_MS)
    yield scene.written.good(partition)


def all_poison(scene: Scene) -> None:
    """So many are too large that something else must be wrong: somebody has to look."""
    too_many = [
        replace(scene.written.good(partition), value=_OVERSIZED)
        for partition in range(3)
        for _ in range(_FUSE + 50)
    ]
    scene.written.publish(too_many)
    scene.halts("RecordsRefused")
    set_topic(scene.kafka.bootstrap_servers, scene.topic, max_message_bytes="100000")
    scene.gets_on()


def clock_is_wrong(scene: Scene) -> None:
    """The machine's clock is two hours ahead, for the log and for the worker.

    The mirror thinks that all is well, but the broker refuses. A few records are set aside; then it
    is too many, and somebody lets the topic take them.
    """
    scene.written.ahead_ms = _TWO_HOURS_MS
    scene.halts("RecordsRefused")
    set_topic(
        scene.kafka.bootstrap_servers, scene.topic, message_timestamp_after_max_ms=str(2**63 - 1)
    )
    scene.gets_on()
    scene.written.ahead_ms = 0
    scene.gets_on()
