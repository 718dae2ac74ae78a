"""What a step does to the model, and what it has to answer.

`enforce retention` and publishers at the same moment may come out in more than one way; what the
real log did is checked against their rules and then taken over.
"""

from __future__ import annotations

import copy
import json
from typing import Any

from tests.drills.model.steps import Step
from tests.drills.model.world import Epoch, Kept, Latest, Partition, Sent, Topic, World

_AHEAD_MS = 3_600_000
_REMEMBERED = 1024
_ROUTED_OPS = ("", "insert", "update", "delete")


class Refused(Exception):
    """The step has to be refused with an error of this class, and changes nothing."""


def after(world: World, step: Step) -> tuple[Any, World]:
    """The answer and the world after a step; raises Refused."""
    changed = copy.deepcopy(world)
    answer = _STEPS[step["do"]](changed, step)
    return answer, changed


def _topic(world: World, reference: str) -> Topic:
    topic = world.topic(reference)
    if topic is None:
        raise Refused("UnknownTopic")
    return topic


def _add(topic: Topic, number: int, record: Step, now_ms: int) -> int:
    """The offset that a record gets, or that of the change which it repeats."""
    partition = topic.partitions[number]
    ts = record.get("ts") or now_ms
    key, op, value = record.get("key"), record.get("op", 0), record["value"]
    if topic.window_seconds is not None and key is not None and op:
        latest = partition.latest.get(key)
        if (
            latest is not None
            and latest.offset >= partition.start
            and abs(ts - latest.ts) <= topic.window_seconds * 1000
            and (latest.op, latest.value) == (op, value)
        ):
            return latest.offset
        partition.latest[key] = Latest(ts, op, value, partition.next_offset)
    partition.records.append(Kept(value, key, ts, op))
    partition.last_ts = max(partition.last_ts, ts)
    return partition.next_offset - 1


def _publish(world: World, step: Step) -> Any:
    topic = _topic(world, step["topic"])
    placed = []
    writer = step.get("writer")
    sent = world.sent.get(writer or "", {})
    highest = max(sent, default=-1)
    in_order = step.get("in_order", False)
    if in_order and sent and step["sequence"] > highest + 1:
        raise Refused("SequenceGap")
    for nth, record in enumerate(step["records"]):
        number = record["partition"]
        if number >= len(topic.partitions):
            raise Refused("UnknownPartition")
        sequence = step.get("sequence", 0) + nth
        known = sent.get(sequence) if writer and sequence <= highest else None
        if known is None and writer and sequence <= highest - _REMEMBERED:
            raise Refused("SequenceTooOld")
        if known is not None:
            same = (topic.id, number, record.get("key"), record["value"], record.get("op", 0))
            if same != (known.topic_id, known.partition, known.key, known.value, known.op):
                raise Refused("SequenceContentMismatch")
            placed.append([topic.name, known.partition, known.offset])
            continue
        if in_order and sequence <= highest:
            raise Refused("SequenceOutOfOrder")
        offset = _add(topic, number, record, world.now_ms)
        placed.append([topic.name, number, offset])
        if writer:
            kept = Sent(
                topic.id, number, offset, record.get("key"), record["value"], record.get("op", 0)
            )
            world.sent.setdefault(writer, {})[sequence] = kept
            world.sent_at_ms[writer] = world.now_ms
    if writer:
        _forget_old(world.sent.get(writer, {}), highest, step["sequence"], len(placed))
    return placed


def _forget_old(sent: dict[int, Sent], highest: int, sequence: int, count: int) -> None:
    """A writer's sequences are forgotten some at a time, and never those of its last call."""
    beyond = sequence + count
    if beyond // _REMEMBERED > max(highest, 0) // _REMEMBERED:
        for old in [each for each in sent if each < min(sequence, beyond - 2 * _REMEMBERED)]:
            del sent[old]


def _publish_bad(world: World, step: Step) -> Any:
    _topic(world, step["topic"])
    raise Refused("UnknownPartition" if "partition" in step["bad"] else "InvalidRecord")


def _publish_rows(world: World, step: Step) -> Any:
    table, op = step["table"], step["op"]
    wanting = [t for t in world.topics.values() if (table, op) in t.routes]
    if not wanting:
        raise Refused("UnknownRoute")
    placed = []
    for topic in sorted(wanting, key=lambda each: each.id):
        for each in step["ids"]:
            key = json.dumps({"id": each}, separators=(",", ":"))
            value = json.dumps({"_table": table, "id": each}, separators=(",", ":"))
            offset = _add(topic, 0, {"key": key, "value": value, "op": op}, world.now_ms)
            placed.append([topic.name, 0, offset])
    return placed


def rows_in_order(step: Step) -> list[tuple[str, Step]]:
    """An epoch's rows as they are written: task after task, each with its share of each topic."""
    tasks = step["tasks"]
    found = []
    for task in range(tasks):
        for topic, rows in step["rows"].items():
            each = -(-len(rows) // tasks)
            share = rows[task * each : (task + 1) * each]
            found += [(topic, row) for row in sorted(share, key=lambda row: row["partition"])]
    return found


def _append(world: World, step: Step) -> Any:
    writer, number = (step["mode"], step["name"]), step["epoch"]
    content = content_of(world, step)
    last = world.epochs.get(writer)
    if last is None:
        if step["mode"] == "stream" and number:
            raise Refused("EpochGap")
    elif number == last.number:
        if content != last.content:
            raise Refused("EpochContentMismatch")
        return [True, last.ranges]
    elif number < last.number:
        raise Refused("EpochTooOld")
    elif step["mode"] == "stream" and number > last.number + 1:
        raise Refused("EpochGap")
    return [False, add_epoch(world, step, content)]


def content_of(world: World, step: Step) -> dict[int, list[tuple[str | None, str]]]:
    """What an epoch holds, by topic and without its order."""
    content: dict[int, list[tuple[str | None, str]]] = {}
    for name, row in rows_in_order(step):
        content.setdefault(world.topics[name].id, []).append((row.get("key"), row["value"]))
    for rows in content.values():
        rows.sort(key=lambda row: (row[0] is not None, row[0] or "", row[1]))
    return content


def add_epoch(
    world: World, step: Step, content: dict[int, list[tuple[str | None, str]]]
) -> list[tuple[str, int, int, int]]:
    """Write a new epoch; the ranges of offsets that it gets."""
    before = {(t.id, n): p.next_offset for t in world.topics.values()
              for n, p in enumerate(t.partitions)}  # fmt: skip
    for name, row in rows_in_order(step):
        _add(world.topics[name], row["partition"], row, world.now_ms)
    ranges = sorted(
        (topic.name, n, before[topic.id, n], partition.next_offset)
        for topic in world.topics.values()
        for n, partition in enumerate(topic.partitions)
        if partition.next_offset > before[topic.id, n]
    )
    writer = (step["mode"], step["name"])
    world.epochs[writer] = Epoch(step["epoch"], content, ranges, world.now_ms)
    return ranges


def _partition(topic: Topic, number: int) -> Partition:
    if number >= len(topic.partitions):
        raise Refused("UnknownPartition")
    return topic.partitions[number]


def _ack(world: World, step: Step) -> Any:
    topic = _topic(world, step["topic"])
    partition = _partition(topic, step["partition"])
    if step["upto"] >= partition.next_offset:
        raise Refused("AckBeyondHead")
    key = (step["group"], topic.id, step["partition"])
    position, version = world.positions.get(key, (-1, 0))
    if step["upto"] + 1 > position:
        position, version = step["upto"] + 1, version + 1
    world.positions[key] = (position, version)
    return [position, version]


def _seek(world: World, step: Step) -> Any:
    topic = _topic(world, step["topic"])
    partition = _partition(topic, step["partition"])
    key = (step["group"], topic.id, step["partition"])
    version = world.positions.get(key, (0, 0))[1]
    if step["expected"] not in (None, version):
        raise Refused("PositionChanged")
    if step["position"] > partition.next_offset:
        raise Refused("AckBeyondHead")
    world.positions[key] = (step["position"], version + 1)
    return [step["position"], version + 1]


def _begin_group(world: World, step: Step) -> Any:
    topic = _topic(world, step["topic"])
    found = {}
    for number, position in step["positions"].items():
        partition = _partition(topic, int(number))
        key = (step["group"], topic.id, int(number))
        if key not in world.positions and position > partition.next_offset:
            raise Refused("AckBeyondHead")
        found[number] = [*world.positions.setdefault(key, (position, 1))]
    return found


def _delete_group(world: World, step: Step) -> Any:
    gone = [key for key in world.positions if key[0] == step["group"]]
    if not gone:
        raise Refused("UnknownGroup")
    for key in gone:
        del world.positions[key]
    return len(gone)


def _create(world: World, step: Step) -> Any:
    if "/" in step["name"]:
        raise Refused("InvalidName")
    if any(world.taken(name) for name in (step["name"], step["alias"]) if name):
        raise Refused("NameTaken")
    topic = Topic(
        world.next_topic_id,
        step["name"],
        step["alias"],
        [Partition() for _ in range(step["partitions"])],
        step["seconds"],
        step["max_bytes"],
        step["window_seconds"],
    )
    world.topics[topic.name] = topic
    world.next_topic_id += 1
    return topic.id


def _drop(world: World, step: Step) -> Any:
    topic = _topic(world, step["topic"])
    del world.topics[topic.name]
    for key in [key for key in world.positions if key[1] == topic.id]:
        del world.positions[key]
    return sum(len(partition.records) for partition in topic.partitions)


def _clear(world: World, step: Step) -> Any:
    topic = _topic(world, step["topic"])
    cleared = 0
    for partition in topic.partitions:
        cleared += len(partition.records)
        partition.start = partition.next_offset
        partition.records = []
        partition.latest = {}
        partition.last_ts = 0
    return cleared


def _grow(world: World, step: Step) -> Any:
    topic = _topic(world, step["topic"])
    if step["partitions"] < len(topic.partitions):
        raise Refused("InvalidSetting")
    groups = {group for group, topic_id, _ in world.positions if topic_id == topic.id}
    while len(topic.partitions) < step["partitions"]:
        for group in groups:  # what is written there is written after they began
            world.positions[group, topic.id, len(topic.partitions)] = (0, 1)
        topic.partitions.append(Partition())
    return step["partitions"]


def _set_retention(world: World, step: Step) -> Any:
    topic = _topic(world, step["topic"])
    topic.seconds, topic.max_bytes = step["seconds"], step["max_bytes"]


def _advance(world: World, step: Step) -> Any:
    world.now_ms += step["ms"]


def _add_route(world: World, step: Step) -> Any:
    topic = _topic(world, step["topic"])
    route = (step["table"], step["op"])
    if route in topic.routes:
        raise Refused("RouteTaken")
    topic.routes.append(route)


def _drop_route(world: World, step: Step) -> Any:
    topic = _topic(world, step["topic"])
    kept = [route for route in topic.routes if route[0] != step["table"]]
    if len(kept) == len(topic.routes):
        raise Refused("UnknownRoute")
    topic.routes = kept


def _fetch(world: World, step: Step) -> Any:
    topic = _topic(world, step["topic"])
    partition = _partition(topic, step["partition"])
    if not partition.start <= step["offset"] <= partition.next_offset:
        raise Refused("OffsetOutOfRange")
    at = step["offset"] - partition.start
    return [list(record) for record in partition.records[at : at + step["most"]]]


def _resolve(world: World, step: Step) -> Any:
    topic = _topic(world, step["topic"])
    partition = _partition(topic, step["partition"])
    for offset, record in enumerate(partition.records, partition.start):
        if record.ts >= step["ts"]:
            return offset
    return partition.next_offset


def _nothing(_: World, __: Step) -> Any:
    return None


_STEPS = {
    "publish": _publish,
    "publish bad": _publish_bad,
    "publish rows": _publish_rows,
    "append": _append,
    "ack": _ack,
    "seek": _seek,
    "begin group": _begin_group,
    "delete group": _delete_group,
    "create": _create,
    "drop": _drop,
    "clear": _clear,
    "grow": _grow,
    "set retention": _set_retention,
    "advance": _advance,
    "add route": _add_route,
    "drop route": _drop_route,
    "fetch": _fetch,
    "resolve": _resolve,
    "restart": _nothing,
    "backup": _nothing,
    "merge": _nothing,
}
