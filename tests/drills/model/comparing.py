"""Whether what is said of a log, and what lies in it, is what the model says."""

from __future__ import annotations

import copy
from typing import Any

from tests.drills.model import oracle
from tests.drills.model.steps import Step
from tests.drills.model.world import Kept, World

_REFUSED = "WritesRefused"
"""The class of all errors that a failing disk leads to."""
_PARTLY = frozenset({"together", "enforce retention"})
"""Steps of several writes, of which some may be done."""


class Wrong(Exception):
    """The log is not what it should be."""


def described(world: World) -> dict[str, Any]:
    """The model in the words in which a log is read back; see acting.observed."""
    return {
        "topics": {
            topic.name: {
                "id": topic.id,
                "alias": topic.alias,
                "retention": [topic.seconds, topic.max_bytes],
                "routes": sorted([table, op] for table, op in topic.routes),
                "partitions": [
                    {"start": p.start, "records": [list(record) for record in p.records]}
                    for p in topic.partitions
                ],
            }
            for topic in world.topics.values()
        },
        "positions": sorted(
            [group, topic_id, partition, *place]
            for (group, topic_id, partition), place in world.positions.items()
        ),
        "epochs": {
            f"{mode}/{name}": [epoch.number, [list(each) for each in epoch.ranges]]
            for (mode, name), epoch in world.epochs.items()
        },
        "sequences": {writer: max(sent) for writer, sent in world.sent.items()},
    }


def difference(expected: Any, found: Any, path: str = "log") -> str | None:
    """Where the two differ first."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted({*expected, *found}):
            if key not in expected or key not in found:
                return f"{path}: {key!r} is {'missing' if key in expected else 'too much'}"
            wrong = difference(expected[key], found[key], f"{path}.{key}")
            if wrong:
                return wrong
        return None
    if isinstance(expected, list) and isinstance(found, list):
        for at, (one, other) in enumerate(zip(expected, found, strict=False)):
            wrong = difference(one, other, f"{path}[{at}]")
            if wrong:
                return wrong
        if len(expected) != len(found):
            return f"{path}: {len(found)} of {len(expected)}"
        return None
    return None if expected == found else f"{path}: {_short(found)}, not {_short(expected)}"


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) < 120 else shown[:117] + "..."


def world_after(world: World, step: Step, answer: dict[str, Any]) -> World:
    """The world after this answer, on a disk that works; raises Wrong."""
    error = answer.get("error")
    if step["do"] == "together":
        return _after_together(world, step, answer)
    if step["do"] == "enforce retention":
        if error is not None:
            raise Wrong(f"retention was refused: {error}")
        return _after_retention(world, answer["ok"], wholly=True)
    try:
        expected, changed = oracle.after(world, step)
    except oracle.Refused as refused:
        if error is None or str(refused) not in error:
            raise Wrong(f"was to be refused as {refused}: {_short(answer)}") from None
        return world
    if error is not None:
        raise Wrong(f"was refused: {error} {answer.get('message')}")
    wrong = difference(_plain(expected), answer["ok"], "answer")
    if wrong:
        raise Wrong(wrong)
    return changed


def refused_by_disk(answer: dict[str, Any]) -> bool:
    """Whether the disk was in the way of the step, or of a part of it."""
    told = answer.get("ok")
    parts = [part for part in told if isinstance(part, dict)] if isinstance(told, list) else []
    return any(_REFUSED in each.get("error", ()) for each in (answer, *parts))


def may_be_done(step: Step, answer: dict[str, Any]) -> bool:
    """Whether a step that the disk was in the way of may be there all the same."""
    return step["do"] in _PARTLY or "OutcomeUnknown" in answer["error"]


def _may_be_after(world: World, step: Step) -> list[World]:
    if step["do"] in _PARTLY:
        return []  # what is found decides: see `fitting`
    try:
        return [oracle.after(world, step)[1]]
    except oracle.Refused:
        return []


def fitting(world: World, step: Step | None, found: dict[str, Any]) -> World:
    """The world that the log is in: before the step, after it, or in between where it may be."""
    tries = [world]
    if step is not None:
        tries += [*_may_be_after(world, step), *_taken_over(world, step, found)]
    differences = []
    for each in tries:
        wrong = difference(described(each), found)
        if wrong is None:
            return each
        differences.append(wrong)
    raise Wrong("; or ".join(dict.fromkeys(differences)))


def _taken_over(world: World, step: Step, found: dict[str, Any]) -> list[World]:
    """The worlds that steps lead to which may be done for a part, by what is there."""
    try:
        if step["do"] == "enforce retention":
            starts = {
                name: [partition["start"] for partition in topic["partitions"]]
                for name, topic in found["topics"].items()
            }
            return [_after_retention(world, {"starts": starts, "bytes": None}, wholly=False)]
        if step["do"] == "together":
            return [_with_tails(world, step, found)]
    except Wrong:
        return []
    return []


def _after_retention(world: World, said: dict[str, Any], *, wholly: bool) -> World:
    changed = copy.deepcopy(world)
    for topic in changed.topics.values():
        for number, partition in enumerate(topic.partitions):
            where = f"retention of {topic.name}/{number}"
            start = said["starts"].get(topic.name, [])[number]
            if not partition.start <= start <= partition.next_offset:
                raise Wrong(f"{where}: start went from {partition.start} to {start}")
            oldest = None if topic.seconds is None else world.now_ms - topic.seconds * 1000
            gone = partition.records[: start - partition.start]
            if (
                gone
                and topic.max_bytes is None
                and (oldest is None or any(record.ts >= oldest for record in gone))
            ):
                raise Wrong(f"{where} took what was not too old, up to {start}")
            partition.records = partition.records[start - partition.start :]
            partition.start = start
            if not wholly:
                continue
            if (
                oldest is not None
                and partition.records
                and all(record.ts < oldest for record in partition.records)
            ):
                raise Wrong(f"{where} left {len(partition.records)} records that are too old")
            size = said["bytes"][topic.name][number]
            if topic.max_bytes is not None and size > topic.max_bytes:
                raise Wrong(f"{where} left {size} bytes")
    return changed


def _after_together(world: World, step: Step, answer: dict[str, Any]) -> World:
    """Each good job has a place of its own behind what was there, and each bad one is refused."""
    changed = copy.deepcopy(world)
    places: dict[tuple[str, int], dict[int, Kept]] = {}
    for job, told in zip(step["jobs"], answer["ok"], strict=True):
        if "bad" in job:
            wanted = "UnknownPartition" if "partition" in job["bad"] else "InvalidRecord"
            if wanted not in told.get("error", ()):
                raise Wrong(f"{job['bad']}: was to be refused as {wanted}: {told}")
            continue
        if "ok" not in told:
            raise Wrong(f"a publisher was refused for another's mistake: {told}")
        ((name, partition, offset),) = told["ok"]
        places.setdefault((name, partition), {})[offset] = _kept(world, job)
    for (name, number), by_offset in places.items():
        partition_ = changed.topics[name].partitions[number]
        first = partition_.next_offset
        if sorted(by_offset) != list(range(first, first + len(by_offset))):
            raise Wrong(f"publishers at once got {sorted(by_offset)} of {name}/{number}")
        partition_.records += [by_offset[offset] for offset in sorted(by_offset)]
    return changed


def _with_tails(world: World, step: Step, found: dict[str, Any]) -> World:
    """Any of the jobs are there, in any order."""
    changed = copy.deepcopy(world)
    for topic in changed.topics.values():
        there = found["topics"].get(topic.name, {"partitions": []})["partitions"]
        for number, partition in enumerate(topic.partitions[: len(there)]):
            sent = {
                job["records"][0]["value"]: _kept(world, job)
                for job in step["jobs"]
                if "bad" not in job
                and (job["topic"], job["records"][0]["partition"]) == (topic.name, number)
            }
            for value, *_ in there[number]["records"][len(partition.records) :]:
                if value in sent:
                    partition.records.append(sent.pop(value))
    return changed


def _kept(world: World, job: Step) -> Kept:
    (record,) = job["records"]
    return Kept(record["value"], record["key"], record.get("ts") or world.now_ms, record["op"])


def _plain(value: Any) -> Any:
    """As it looks after a way through JSON."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
