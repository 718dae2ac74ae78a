"""Does steps to a real log, one after the other, and reads all of it back when asked.

asks    {"do": …, …}, or {"do": "observe"}
answer  {"ok": …}, or {"error": [names of the error's classes], "message": …}
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from duolog.errors import DuologError
from duolog.log.embedded import EmbeddedLog, open_log
from duolog.log.from_backup import restore_backup
from duolog.log.model import (
    AtTimestamp,
    Mode,
    Op,
    PayloadMode,
    Record,
    Retention,
    Route,
    TopicSettings,
    Writer,
)
from duolog.log.options import FaultPoint, LogOptions
from duolog.log.part import PartBuilder
from tests.drills.model.steps import GROUPS, PUBLISHERS, WRITERS, Step
from tests.drills.worker import say
from tests.drills.writing import use_small_buffers
from tests.support.clock import ManualClock
from tests.support.records import record_batch
from tests.support.shim import Shim

_TARGET = "all"
_MAX_RECORD_BYTES = 100_000


def act(
    folder: str,
    *,
    now_ms: int,
    small_buffers: bool = False,
    journal: tuple[str, str] | None = None,
    failing: bool = False,
    die_at: tuple[FaultPoint, int] | None = None,
) -> None:
    """The role."""
    shim = None
    if journal is not None or failing:
        shim = Shim()
        watched, written = journal or (folder, None)
        shim.watch(Path(watched), None if written is None else Path(written))
    if small_buffers:
        use_small_buffers()
    acting = Acting(Path(folder), now_ms, _fault_of(die_at))
    say({"ok": "opened"})
    for number, line in enumerate(sys.stdin):
        step = json.loads(line)
        if step["do"] == "fail syncs":
            assert shim is not None
            shim.fail_syncs(step["first"], step["count"])
            answer: Any = {"ok": None}
        elif step["do"] == "limit disk":
            assert shim is not None
            shim.limit(step["bytes"])
            answer = {"ok": None}
        elif step["do"] == "fail calls":
            assert shim is not None
            shim.fail_calls(
                step["call"], step["text"], first=step["first"], count=step["count"],
                error=step["error"],
            )  # fmt: skip
            answer = {"ok": None}
        elif step["do"] == "heal":
            assert shim is not None
            shim.fail_syncs(0, 0)
            shim.limit(None)
            shim.heal()
            answer = {"ok": None}
        else:
            answer = acting.answer(step)
        if shim is not None and journal is not None:
            shim.note(json.dumps([number, answer]).encode())
        say(answer)
    acting.log.close()


class Acting:
    """One log, opened again whenever a step says so."""

    def __init__(self, folder: Path, now_ms: int, fault: Any) -> None:
        self._folder = folder
        self._clock = ManualClock(now_ms)
        self._options = LogOptions(
            clock=self._clock,
            min_free_bytes=0,
            cache_bytes=1 << 16,
            max_record_bytes=_MAX_RECORD_BYTES,
            fault=fault,
        )
        self.log = open_log(folder, options=self._options)

    def answer(self, step: Step) -> dict[str, Any]:
        """What a step answers."""
        try:
            return {"ok": getattr(self, "_" + step["do"].replace(" ", "_"))(step)}
        except DuologError as error:
            return {"error": _names(error), "message": str(error)}

    def _observe(self, _: Step) -> Any:
        return observed(self.log)

    def _restart(self, _: Step) -> Any:
        self.log.close()
        self.log = open_log(self._folder, create=False, options=self._options)

    def _backup(self, _: Step) -> Any:
        """What a restored backup of it holds is what it holds, or an error says so."""
        backup = self._folder.with_name(self._folder.name + ".backup")
        restored = self._folder.with_name(self._folder.name + ".restored")
        for left_by_a_kill in (backup, restored):
            shutil.rmtree(left_by_a_kill, ignore_errors=True)
        try:
            self.log.backup(backup)
            restore_backup(backup, restored, self._options, lambda *_: lambda _: None)
            with open_log(restored, create=False, options=self._options) as copy:
                same = observed(copy) == observed(self.log)
            return None if same else "a restored backup holds something else"
        finally:
            shutil.rmtree(backup, ignore_errors=True)
            shutil.rmtree(restored, ignore_errors=True)

    def _merge(self, step: Step) -> Any:
        self.log.merge_small_batches(step["topic"], step["partition"])

    def _advance(self, step: Step) -> Any:
        self._clock.at_ms += step["ms"]

    # -- writing

    def _publish(self, step: Step) -> Any:
        records = [_record(each) for each in step["records"]]
        placed = self.log.publish(
            step["topic"], records, writer=step.get("writer"), sequence=step.get("sequence"),
            in_order=step.get("in_order", False),
        )  # fmt: skip
        return [[each.topic, each.partition, each.offset] for each in placed]

    def _publish_bad(self, step: Step) -> Any:
        records = [*map(_record, step["records"]), _bad_record(step["bad"], self._clock.at_ms)]
        placed = self.log.publish(step["topic"], records)
        return [[each.topic, each.partition, each.offset] for each in placed]

    def _publish_rows(self, step: Step) -> Any:
        rows = [{"id": each} for each in step["ids"]]
        placed = self.log.publish_rows(step["table"], Op(step["op"]), rows, ["id"])
        return [[each.topic, each.partition, each.offset] for each in placed]

    def _together(self, step: Step) -> Any:
        def publish(job: Step) -> dict[str, Any]:
            if "bad" in job:
                return self.answer({**job, "do": "publish bad", "records": []})
            return self.answer({**job, "do": "publish"})

        with ThreadPoolExecutor(len(step["jobs"])) as publishers:
            return list(publishers.map(publish, step["jobs"]))

    def _append_together(self, step: Step) -> Any:
        with ThreadPoolExecutor(len(step["jobs"])) as writers:
            return list(writers.map(self.answer, step["jobs"]))

    def _append(self, step: Step) -> Any:
        writer = _writer(step["mode"], step["name"])
        place = self.log.staging(writer, step["epoch"]) if step["staged"] else None
        parts = []
        for task in range(step["tasks"]):
            builder = PartBuilder(place, target_bytes=2000, max_record_bytes=_MAX_RECORD_BYTES)
            for name, rows in step["rows"].items():
                each = -(-len(rows) // step["tasks"])
                self._add(builder, name, rows[task * each : (task + 1) * each])
            parts.append(builder.finish())
        appended = self.log.append(writer, step["epoch"], parts)
        return [appended.repeated, _ranges(appended.ranges)]

    def _add(self, builder: PartBuilder, name: str, rows: list[Step]) -> None:
        topic = self.log.topic(name)
        for partition in sorted({row["partition"] for row in rows}):
            for row in rows:
                if row["partition"] == partition:
                    records = record_batch(
                        [row["value"].encode()],
                        keys=[_bytes(row.get("key"))],
                        ts_ms=row["ts"],
                        op=Op(row.get("op", 0)),
                    )
                    builder.add(topic, partition, records)

    # -- groups

    def _ack(self, step: Step) -> Any:
        moved = self.log.ack(step["group"], step["topic"], step["upto"], step["partition"])
        return [moved.position, moved.version]

    def _seek(self, step: Step) -> Any:
        moved = self.log.seek(
            step["group"], step["topic"], step["partition"], step["position"],
            expected_version=step["expected"],
        )  # fmt: skip
        return [moved.position, moved.version]

    def _begin_group(self, step: Step) -> Any:
        positions = {int(number): at for number, at in step["positions"].items()}
        begun = self.log.begin_group(step["group"], step["topic"], positions)
        return {str(each.partition): [each.position, each.version] for each in begun}

    def _delete_group(self, step: Step) -> Any:
        return self.log.delete_group(step["group"])

    # -- topics

    def _create(self, step: Step) -> Any:
        settings = TopicSettings(
            alias=step["alias"],
            partitions=step["partitions"],
            retention=Retention(step["seconds"], step["max_bytes"]),
            dedup_window_seconds=step["window_seconds"],
        )
        return self.log.create_topic(step["name"], settings).id

    def _drop(self, step: Step) -> Any:
        return self.log.drop_topic(step["topic"]).messages_deleted

    def _clear(self, step: Step) -> Any:
        return self.log.clear_topic(step["topic"]).messages_deleted

    def _grow(self, step: Step) -> Any:
        return self.log.set_partitions(step["topic"], step["partitions"]).partitions

    def _set_retention(self, step: Step) -> Any:
        self.log.set_retention(step["topic"], Retention(step["seconds"], step["max_bytes"]))

    def _enforce_retention(self, _: Step) -> Any:
        self.log.enforce_retention()
        offsets = {topic.name: self.log.offsets(topic.id) for topic in self.log.topics()}
        return {
            "starts": {name: [each.start for each in found] for name, found in offsets.items()},
            "bytes": {name: [each.bytes for each in found] for name, found in offsets.items()},
            **_remembered(self.log),
        }

    def _add_route(self, step: Step) -> Any:
        route = Route(step["table"], frozenset({Op(step["op"])}), payload=PayloadMode.KEY)
        self.log.add_route(step["topic"], route)

    def _drop_route(self, step: Step) -> Any:
        self.log.drop_route(step["topic"], step["table"])

    # -- reading

    def _fetch(self, step: Step) -> Any:
        fetched = self.log.fetch(
            step["topic"], step["partition"], step["offset"], max_records=step["most"]
        )
        return [_read(record) for record in fetched]

    def _resolve(self, step: Step) -> Any:
        return self.log.resolve(step["topic"], step["partition"], AtTimestamp(step["ts"]))


def observed(log: EmbeddedLog) -> dict[str, Any]:
    """All that there is."""
    log.last_sequence(PUBLISHERS[0])  # after a failed write, the log is opened anew for this
    return {
        "topics": {
            topic.name: {
                "id": topic.id,
                "alias": topic.alias,
                "retention": [topic.retention.seconds, topic.retention.max_bytes],
                "routes": sorted([route.table, int(op)] for route in topic.routes
                                 for op in route.ops),
                "partitions": [
                    {"start": each.start, "records": _all_of(log, topic.id, each)}
                    for each in log.offsets(topic.id)
                ],
            }
            for topic in log.topics()
        },
        "positions": sorted(
            [each.group, log.topic(each.topic).id, each.partition, each.position, each.version]
            for group in GROUPS
            for each in log.group_positions(group)
        ),
        **_remembered(log),
    }  # fmt: skip


def _remembered(log: EmbeddedLog) -> dict[str, Any]:
    """Of batch writers, streams and publishers."""
    return {
        "epochs": {
            f"{mode}/{name}": [last.epoch, _ranges(last.ranges)]
            for mode, name in WRITERS
            if (last := log.last_epoch(_writer(mode, name))) is not None
        },
        "sequences": {
            writer: sequence
            for writer in PUBLISHERS
            if (sequence := log.last_sequence(writer)) is not None
        },
    }


def _all_of(log: EmbeddedLog, topic_id: int, bounds: Any) -> list[Any]:
    found: list[Any] = []
    at = bounds.start
    while at < bounds.next_offset:
        fetched = log.fetch(topic_id, bounds.partition, at)
        for record in fetched:
            assert record.offset == at, f"offset {record.offset} stands where {at} belongs"
            found.append(_read(record))
            at += 1
    return found


def _read(record: Any) -> list[Any]:
    key = None if record.key is None else record.key.decode()
    return [(record.value or b"").decode(), key, record.ts_ms, int(record.op)]


def _ranges(ranges: Any) -> list[Any]:
    return sorted([each.topic, each.partition, each.start, each.next_offset] for each in ranges)


def _writer(mode: str, name: str) -> Writer:
    return Writer(Mode(mode), name, _TARGET)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _record(said: Step) -> Record:
    return Record(
        said["value"].encode(),
        _bytes(said.get("key")),
        partition=said["partition"],
        ts_ms=said.get("ts"),
        op=Op(said.get("op", 0)),
    )


def _bad_record(what: str, now_ms: int) -> Record:
    good = Record(b"bad", partition=0)
    changes: dict[str, Any] = {
        "ts is a float": {"ts_ms": 1.5},
        "ts is negative": {"ts_ms": -1},
        "ts is far ahead": {"ts_ms": now_ms * 1000},
        "header with half a surrogate pair": {"headers": (("\ud800", b""),)},
        "table with half a surrogate pair": {"table": "\ud800"},
        "table is a number": {"table": 5},
        "op is a number that is none": {"op": 9},
        "value is a text": {"value": "text"},
        "key is a text": {"key": "text"},
        "too large": {"value": b"x" * (_MAX_RECORD_BYTES + 1)},
        "partition is not there": {"partition": 99},
        "partition is negative": {"partition": -1},
        "header value is a text": {"headers": (("name", "text"),)},
    }
    return replace(good, **changes[what])


def _names(error: BaseException) -> list[str]:
    return [kind.__name__ for kind in type(error).__mro__]


def _fault_of(die_at: tuple[FaultPoint, int] | None) -> Any:
    left = die_at[1] if die_at else 0

    def fault(point: FaultPoint) -> None:
        nonlocal left
        if die_at and point == die_at[0]:
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), 9)

    return fault
