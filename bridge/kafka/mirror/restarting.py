"""Beginning a mirror anew: what is remembered of it is forgotten, and the worker copies again."""

from __future__ import annotations

from duolog.log.access import LogAccess, TopicRef
from duolog.log.mirror_modes import MirrorMode


def restart(log: LogAccess, reference: TopicRef) -> int:
    """Forget a topic's mirror; how many partitions had one.

    A worker that runs notices by itself. It makes the Kafka topic where there is none, and copies
    what the log keeps behind what is in it. A mirror that was detached begins again.
    """
    topic = log.topic(reference)
    if log.mirror_modes().of(topic.name) is MirrorMode.DETACHED:
        log.set_mirror_mode(topic.id, MirrorMode.ON)
        return topic.partitions
    return sum(log.forget_mirror(topic.id, partition) for partition in range(topic.partitions))
