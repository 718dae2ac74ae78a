"""24 publishers with 20 events each, in one process; says what is wrong with what they got."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from duolog.log.embedded import EmbeddedLog, open_log
from duolog.log.model import Placed, Record, TopicSettings
from tests.drills.worker import say

PUBLISHERS, EVENTS = 24, 20


def publish_together(folder: str, *, partitions: int) -> None:
    """The role."""
    with open_log(folder) as log:
        log.create_topic("events", TopicSettings(partitions=partitions))
        with ThreadPoolExecutor(PUBLISHERS) as pool:
            told = [
                answer
                for answers in pool.map(lambda n: _publish(log, n), range(PUBLISHERS))
                for answer in answers
            ]
    with open_log(folder) as log:
        say(["violations", _wrong(log, dict(told))])


def _publish(log: EmbeddedLog, publisher: int) -> list[tuple[bytes, Placed]]:
    events = [b"%d/%d" % (publisher, event) for event in range(EVENTS)]
    return [(event, log.publish("events", Record(event))[0]) for event in events]


def _wrong(log: EmbeddedLog, told: dict[bytes, Placed]) -> list[str]:
    wrong = []
    stored: dict[tuple[int, int], bytes] = {}
    for bounds in log.offsets("events"):
        read = list(log.fetch("events", bounds.partition, 0))
        if [record.offset for record in read] != list(range(bounds.next_offset)):
            wrong.append(f"partition {bounds.partition} has gaps")
        for record in read:
            assert record.value is not None
            stored[bounds.partition, record.offset] = record.value
    times = Counter(stored.values())
    expected = PUBLISHERS * EVENTS
    if len(times) != expected or len(stored) != expected:
        wrong.append(f"{len(stored)} records, {len(times)} of them distinct, not {expected}")
    for event, placed in told.items():
        if stored.get((placed.partition, placed.offset)) != event:
            wrong.append(f"{event!r} is not at {placed}, as was said")
    return wrong
