"""Random steps: mostly what an application does, now and then what nobody should.

A step is a dict that JSON can hold. Each value that is written is another one, so that whatever is
read says which step wrote it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests.drills.model.world import Topic, World

Step = dict[str, Any]

NAMES = ("ada", "bob", "cleo", "dora")
TABLES = ("shop.orders", "shop.items")
GROUPS = ("billing", "search")
PUBLISHERS = ("p1", "p2")
WRITERS = (("stream", "s1"), ("stream", "s2"), ("batch", "b1"))
EXPIRATION_MS = 7 * 86_400_000  # the default of writer_expiration_seconds
LOOK_AGAIN_MS = 3_600_000  # from the look that finds a writer idle to the one that forgets him
_MOST_TOPICS = 4
_OPS = (1, 2, 3)

# What is wrong with a record, and nothing else is.
BAD_RECORDS = (
    "ts is a float",
    "ts is negative",
    "ts is far ahead",
    "header with half a surrogate pair",
    "table with half a surrogate pair",
    "table is a number",
    "op is a number that is none",
    "value is a text",
    "key is a text",
    "too large",
    "partition is not there",
    "partition is negative",
    "header value is a text",
)


class Steps:
    """Makes steps that fit a world."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._values = 0
        self._kinds: list[tuple[int, Callable[[World], Step | None]]] = [
            (30, self._publish),
            (12, self._publish_in_sequence),
            (6, self._publish_again),
            (6, self._publish_in_order),
            (12, self._together),
            (6, self._append_together),
            (16, self._append),
            (4, self._append_wrongly),
            (6, self._bad_record),
            (10, self._ack),
            (4, self._seek),
            (5, self._begin_group),
            (2, self._delete_group),
            (6, self._create),
            (2, self._drop),
            (3, self._clear),
            (2, self._grow),
            (3, self._set_retention),
            (6, self._enforce),
            (4, self._advance),
            (1, self._advance_beyond_expiry),
            (3, self._route),
            (4, self._publish_rows),
            (8, self._fetch),
            (4, self._resolve),
            (3, self._unknown),
            (3, self._merge),
            (2, self._restart),
            (1, self._backup),
        ]

    def next(self, world: World) -> Step:
        """A step that this world can be given."""
        if not world.topics:
            return self._create(world)
        weights = [weight for weight, _ in self._kinds]
        while True:
            ((_, make),) = self._chance.choices(self._kinds, weights)
            step = make(world)
            if step is not None:
                return step

    # -- parts of steps

    def _value(self) -> str:
        self._values += 1
        size = self._chance.choice((0, 0, 5, 300, 8000))
        return f"v{self._values}" + "x" * size

    def _record(self, world: World, topic: Topic) -> Step:
        made: Step = {"partition": self._chance.randrange(len(topic.partitions))}
        if topic.window_seconds is not None:
            # Changes of few keys with few values, so that some repeat; times never go back.
            value = self._chance.choice(("A", "B"))
            return {**made, "key": self._chance.choice("kl"), "value": value, "op": 2}
        ts = self._chance.choice((None, None, world.now_ms - self._chance.randrange(100_000)))
        key = self._chance.choice((None, "k1", "k2", ""))
        return {**made, "key": key, "value": self._value(), "op": 0, "ts": ts}

    def _records(self, world: World, topic: Topic) -> list[Step]:
        count = self._chance.choice((1, 1, 2, 5))
        return [self._record(world, topic) for _ in range(count)]

    def _some(self, world: World) -> Topic:
        return self._chance.choice(list(world.topics.values()))

    def _place(self, world: World) -> tuple[Topic, int]:
        topic = self._some(world)
        return topic, self._chance.randrange(len(topic.partitions))

    def _reference(self, topic: Topic) -> str:
        return self._chance.choice((topic.name, topic.alias or topic.name))

    # -- writing

    def _publish(self, world: World) -> Step:
        topic = self._some(world)
        records = self._records(world, topic)
        return {"do": "publish", "topic": self._reference(topic), "records": records}

    def _publish_in_sequence(self, world: World) -> Step:
        topic, writer = self._some(world), self._chance.choice(PUBLISHERS)
        sent = world.sent.get(writer, {})
        first = max(sent, default=-1) + 1 + self._chance.choice((0, 0, 0, 3, 1020))
        return {**self._publish(world), "topic": topic.name, "writer": writer, "sequence": first,
                "records": self._records(world, topic)}  # fmt: skip

    def _publish_in_order(self, world: World) -> Step:
        """The next sequence, one too far, or one that may never have been sent."""
        topic, writer = self._some(world), self._chance.choice(PUBLISHERS)
        last = max(world.sent.get(writer, {}), default=-1)
        sequence = max(0, last + self._chance.choice((1, 1, 1, 3, 0, -4)))
        return {"do": "publish", "topic": topic.name, "writer": writer, "sequence": sequence,
                "in_order": True, "records": self._records(world, topic)}  # fmt: skip

    def _publish_again(self, world: World) -> Step | None:
        """What was sent before, as it was or not, and perhaps something new behind it."""
        writer = self._chance.choice(PUBLISHERS)
        sent = world.sent.get(writer, {})
        if not sent:
            return None
        sequence = self._chance.choice(sorted(sent)[-20:])
        known = sent[sequence]
        topic = next((t for t in world.topics.values() if t.id == known.topic_id), None)
        if topic is None or topic.window_seconds is not None:
            return None
        again: Step = {"partition": known.partition, "key": known.key, "value": known.value,
                       "op": known.op}  # fmt: skip
        if self._chance.random() < 0.3:
            again.update(self._chance.choice(({"value": self._value()}, {"op": known.op ^ 1})))
        new = [self._record(world, topic)] if self._chance.random() < 0.5 else []
        if new and self._chance.random() < 0.5:  # behind a new one, so that what is refused
            sequence, records = sequence - 1, [*new, again]  # is not the first
            if sequence < 0 or sequence in sent:
                return None
        else:
            records = [again, *([] if sequence + 1 in sent else new)]
        return {"do": "publish", "topic": topic.name, "records": records, "writer": writer,
                "sequence": sequence, "in_order": self._chance.random() < 0.3}  # fmt: skip

    def _together(self, world: World) -> Step:
        """Publishers at the same moment, one of them perhaps with a record that nobody takes."""
        jobs = []
        for _ in range(self._chance.randint(2, 8)):
            topic = self._chance.choice(list(world.topics.values()))
            record = {**self._record(world, topic), "value": self._value(), "key": None, "op": 0}
            jobs.append({"topic": topic.name, "records": [record]})
        if self._chance.random() < 0.5:
            jobs.append({"topic": jobs[0]["topic"], "bad": self._chance.choice(BAD_RECORDS)})
        self._chance.shuffle(jobs)
        return {"do": "together", "jobs": jobs}

    def _bad_record(self, world: World) -> Step:
        """A call with good records and a bad one: nothing of it is written."""
        topic = self._some(world)
        good = [self._record(world, topic) for _ in range(self._chance.choice((0, 0, 2)))]
        return {"do": "publish bad", "topic": topic.name, "records": good,
                "bad": self._chance.choice(BAD_RECORDS)}  # fmt: skip

    def _append(self, world: World) -> Step:
        mode, name = self._chance.choice(WRITERS)
        last = world.epochs.get((mode, name))
        number = 0 if last is None else last.number + 1
        if mode == "batch":
            number += self._chance.choice((0, 0, 4))
        return self._epoch(world, mode, name, number)

    def _epoch(self, world: World, mode: str, name: str, number: int) -> Step:
        topics = self._chance.sample(
            sorted(world.topics), self._chance.randint(1, len(world.topics))
        )
        rows: dict[str, list[Step]] = {}
        for each in topics:
            topic = world.topics[each]
            count = self._chance.choice((1, 3, 40))
            rows[each] = [{**self._record(world, topic), "ts": world.now_ms} for _ in range(count)]
        return {"do": "append", "mode": mode, "name": name, "epoch": number, "rows": rows,
                "tasks": self._chance.choice((1, 2, 5)),
                "staged": self._chance.random() < 0.4}  # fmt: skip

    def _append_together(self, world: World) -> Step | None:
        """New epochs of several writers at the same moment, in any order."""
        if any(topic.window_seconds is not None for topic in world.topics.values()):
            return None  # what is a repeat depends on the order
        writers = self._chance.sample(WRITERS, self._chance.randint(2, len(WRITERS)))
        jobs = []
        for mode, name in writers:
            last = world.epochs.get((mode, name))
            jobs.append(self._epoch(world, mode, name, 0 if last is None else last.number + 1))
        return {"do": "append together", "jobs": jobs}

    def _append_wrongly(self, world: World) -> Step | None:
        """An epoch with other content, one from long ago, or one too far ahead."""
        mode, name = self._chance.choice(WRITERS)
        last = world.epochs.get((mode, name))
        if last is None:
            return self._epoch(world, mode, name, 3) if mode == "stream" else None
        number = self._chance.choice((last.number, last.number - 1, last.number + 3))
        if number < 0 or (mode == "batch" and number > last.number):
            return None
        return self._epoch(world, mode, name, number)

    # -- groups

    def _ack(self, world: World) -> Step:
        topic, partition = self._place(world)
        end = topic.partitions[partition].next_offset
        upto = self._chance.randrange(end + 1) if end else 0  # also one that is not there
        return {"do": "ack", "group": self._chance.choice(GROUPS), "topic": topic.name,
                "partition": partition, "upto": upto}  # fmt: skip

    def _seek(self, world: World) -> Step:
        topic, partition = self._place(world)
        end = topic.partitions[partition].next_offset
        group = self._chance.choice(GROUPS)
        _, version = world.positions.get((group, topic.id, partition), (0, 0))
        expected = self._chance.choice((None, version, version + 1))
        return {"do": "seek", "group": group, "topic": topic.name, "partition": partition,
                "position": self._chance.randrange(end + 2), "expected": expected}  # fmt: skip

    def _begin_group(self, world: World) -> Step:
        topic, partition = self._place(world)
        positions = {
            str(number): self._chance.randrange(each.next_offset + 1)
            for number, each in enumerate(topic.partitions)
            if number == partition or self._chance.random() < 0.5
        }
        if self._chance.random() < 0.1:
            positions[str(partition)] = topic.partitions[partition].next_offset + 1
        return {"do": "begin group", "group": self._chance.choice(GROUPS), "topic": topic.name,
                "positions": positions}  # fmt: skip

    def _delete_group(self, _: World) -> Step:
        return {"do": "delete group", "group": self._chance.choice(GROUPS)}

    # -- topics

    def _create(self, world: World) -> Step:
        name = self._chance.choice(NAMES)
        if len(world.topics) >= _MOST_TOPICS and not world.taken(name):
            name = next(iter(world.topics))
        return {"do": "create", "name": name,
                "alias": self._chance.choice((None, None, f"alias-{name}")),
                "partitions": self._chance.choice((1, 1, 2, 3)),
                "seconds": self._chance.choice((None, 60.0)),
                "max_bytes": self._chance.choice((None, None, 20_000)),
                "window_seconds": self._chance.choice((None, None, 30.0))}  # fmt: skip

    def _drop(self, world: World) -> Step:
        return {"do": "drop", "topic": self._reference(self._some(world))}

    def _clear(self, world: World) -> Step:
        return {"do": "clear", "topic": self._reference(self._some(world))}

    def _grow(self, world: World) -> Step:
        topic = self._some(world)
        return {"do": "grow", "topic": topic.name, "partitions": self._chance.randint(1, 4)}

    def _set_retention(self, world: World) -> Step:
        return {"do": "set retention", "topic": self._some(world).name,
                "seconds": self._chance.choice((None, 30.0, 200.0)),
                "max_bytes": self._chance.choice((None, 5_000, 50_000))}  # fmt: skip

    def _enforce(self, _: World) -> Step:
        return {"do": "enforce retention"}

    def _advance(self, _: World) -> Step:
        return {
            "do": "advance",
            "ms": self._chance.choice((1, 500, 20_000, 100_000, LOOK_AGAIN_MS)),
        }

    def _advance_beyond_expiry(self, _: World) -> Step:
        """Whoever does not write before the next retention is idle to it."""
        return {"do": "advance", "ms": EXPIRATION_MS + 86_400_000}

    def _route(self, world: World) -> Step:
        topic, table = self._some(world), self._chance.choice(TABLES)
        if topic.window_seconds is not None or self._chance.random() < 0.3:
            return {"do": "drop route", "topic": topic.name, "table": table}
        return {"do": "add route", "topic": topic.name, "table": table,
                "op": self._chance.choice(_OPS)}  # fmt: skip

    def _publish_rows(self, world: World) -> Step | None:
        table, op = self._chance.choice(TABLES), self._chance.choice(_OPS)
        wanting = [t for t in world.topics.values() if (table, op) in t.routes]
        if any(len(topic.partitions) > 1 for topic in wanting):
            return None  # where keys go is for other tests
        ids = [self._value() for _ in range(self._chance.choice((1, 3)))]
        return {"do": "publish rows", "table": table, "op": op, "ids": ids}

    # -- reading, and the rest

    def _fetch(self, world: World) -> Step:
        topic, partition = self._place(world)
        end = topic.partitions[partition].next_offset
        return {"do": "fetch", "topic": topic.name, "partition": partition,
                "offset": self._chance.randrange(end + 2),
                "most": self._chance.choice((1, 2, 1000))}  # fmt: skip

    def _resolve(self, world: World) -> Step:
        topic, partition = self._place(world)
        return {"do": "resolve", "topic": topic.name, "partition": partition,
                "ts": world.now_ms - self._chance.randrange(200_000)}  # fmt: skip

    def _unknown(self, world: World) -> Step:
        topic = self._some(world)
        return self._chance.choice(
            (
                {"do": "clear", "topic": "nobody"},
                {"do": "drop", "topic": "nobody"},
                {"do": "publish", "topic": "nobody", "records": [{"value": "x", "partition": 0}]},
                {"do": "create", "name": "no name/", "alias": None, "partitions": 1,
                 "seconds": None, "max_bytes": None, "window_seconds": None},
                {"do": "ack", "group": "billing", "topic": topic.name, "partition": 99, "upto": 0},
            )
        )  # fmt: skip

    def _restart(self, _: World) -> Step:
        return {"do": "restart"}

    def _merge(self, world: World) -> Step:
        topic, partition = self._place(world)
        return {"do": "merge", "topic": topic.name, "partition": partition}

    def _backup(self, _: World) -> Step:
        return {"do": "backup"}
