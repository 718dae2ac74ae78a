"""What is true after several did something at the same moment, in an order that nobody knows."""

from __future__ import annotations

import copy
from typing import Any

from tests.drills.model.oracle import add_epoch, content_of
from tests.drills.model.steps import Step
from tests.drills.model.world import Kept, World


class Wrong(Exception):
    """The log is not what it should be."""


def after_publishers(world: World, step: Step, answer: dict[str, Any]) -> World:
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
        partition_.last_ts = max(partition_.last_ts, *(each.ts for each in by_offset.values()))
    return changed


def with_tails(world: World, step: Step, found: dict[str, Any]) -> World:
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
                    partition.last_ts = max(partition.last_ts, partition.records[-1].ts)
    return changed


def _kept(world: World, job: Step) -> Kept:
    (record,) = job["records"]
    return Kept(record["value"], record["key"], record.get("ts") or world.now_ms, record["op"])


def after_appends(world: World, step: Step, answer: dict[str, Any]) -> World:
    """Each epoch lies whole behind what was there, and none within another."""
    told = answer["ok"]
    refused = [each for each in told if "ok" not in each or each["ok"][0] is not False]
    if refused:
        raise Wrong(f"a new epoch was refused, or taken for a repeat: {refused[0]}")
    return _with_appends(world, step["jobs"], [each["ok"][1] for each in told])


def with_epochs(world: World, step: Step, found: dict[str, Any]) -> World:
    """Any of the epochs are there."""
    jobs, ranges = [], []
    for job in step["jobs"]:
        there = found["epochs"].get(f"{job['mode']}/{job['name']}")
        if there is not None and there[0] == job["epoch"]:
            jobs.append(job)
            ranges.append(there[1])
    return _with_appends(world, jobs, ranges)


def _with_appends(world: World, jobs: list[Step], ranges: list[list[Any]]) -> World:
    """The epochs in an order that gives each of them the offsets that it was told."""
    changed = copy.deepcopy(world)
    left = list(zip(jobs, ranges, strict=True))
    while left:
        next_one = next((each for each in left if _fits(changed, each[1])), None)
        if next_one is None:
            raise Wrong(f"epochs at once got offsets that do not join: {ranges}")
        left.remove(next_one)
        job, told = next_one
        got = [list(each) for each in add_epoch(changed, job, content_of(changed, job))]
        if got != told:
            raise Wrong(f"an epoch got the offsets {told}, not {got}")
    return changed


def _fits(world: World, ranges: list[Any]) -> bool:
    """Whether these ranges lie directly behind what is there."""
    return all(
        world.topics[name].partitions[partition].next_offset == start
        for name, partition, start, _ in ranges
    )
