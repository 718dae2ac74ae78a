"""Whether what is said of a log, and what lies in it, is what the model says."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

from tests.drills.model import oracle
from tests.drills.model.steps import EXPIRATION_MS, LOOK_AGAIN_MS, Step
from tests.drills.model.together import (
    Wrong,
    after_appends,
    after_publishers,
    with_epochs,
    with_tails,
)
from tests.drills.model.world import World

_REFUSED = "WritesRefused"
"""The class of all errors that a disk leads to which fails when it is written."""
_UNREADABLE = {"DamagedLog", "DamagedPart"}
_PARTLY = frozenset({"together", "append together", "enforce retention"})
"""Steps of several writes, of which some may be done."""


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
        return after_publishers(world, step, answer)
    if step["do"] == "append together":
        return after_appends(world, step, answer)
    if step["do"] == "enforce retention":
        if error is not None:
            raise Wrong(f"retention was refused: {error}")
        return _after_expiry(_after_retention(world, answer["ok"], wholly=True), answer["ok"])
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


def refused_by_disk(answer: dict[str, Any], *, cannot_be_read: bool = False) -> bool:
    """Whether the disk was in the way of the step, or of a part of it."""
    told = answer.get("ok")
    parts = [part for part in told if isinstance(part, dict)] if isinstance(told, list) else []
    expected = {_REFUSED} | (_UNREADABLE if cannot_be_read else set())
    return any(expected & set(each.get("error", ())) for each in (answer, *parts))


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
    if step is not None and step["do"] == "enforce retention":
        world = replace(world, looked_at_ms=[*world.looked_at_ms, world.now_ms])
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
            said = {"starts": starts, "bytes": None}
            return [_after_expiry(_after_retention(world, said, wholly=False), found)]
        if step["do"] == "together":
            return [with_tails(world, step, found)]
        if step["do"] == "append together":
            return [with_epochs(world, step, found)]
    except Wrong:
        return []
    return []


def _after_expiry(world: World, found: dict[str, Any]) -> World:
    """Those publishers and batch writers are forgotten that are not found, if they may be: they
    were idle when somebody looked an hour ago.
    """
    looks = [at_ms for at_ms in world.looked_at_ms if at_ms <= world.now_ms - LOOK_AGAIN_MS]
    oldest = max(looks, default=0) - EXPIRATION_MS
    for writer, at_ms in tuple(world.sent_at_ms.items()):
        if at_ms < oldest and writer not in found["sequences"]:
            del world.sent[writer], world.sent_at_ms[writer]
    for (mode, name), epoch in tuple(world.epochs.items()):
        is_idle = mode == "batch" and epoch.at_ms < oldest
        if is_idle and f"{mode}/{name}" not in found["epochs"]:
            del world.epochs[mode, name]
    world.looked_at_ms.append(world.now_ms)
    return world


def _after_retention(world: World, said: dict[str, Any], *, wholly: bool) -> World:
    changed = copy.deepcopy(world)
    for topic in changed.topics.values():
        starts = said["starts"].get(topic.name, [])
        if len(starts) != len(topic.partitions):
            raise Wrong(f"{topic.name} has {len(starts)} of {len(topic.partitions)} partitions")
        for number, partition in enumerate(topic.partitions):
            where = f"retention of {topic.name}/{number}"
            start = starts[number]
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
            if oldest is not None and partition.records and partition.last_ts < oldest:
                raise Wrong(f"{where} left {len(partition.records)} records that are too old")
            size = said["bytes"][topic.name][number]
            if topic.max_bytes is not None and size > topic.max_bytes:
                raise Wrong(f"{where} left {size} bytes")
    return changed


def _plain(value: Any) -> Any:
    """As it looks after a way through JSON."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
