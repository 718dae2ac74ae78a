"""Random histories of a keyed table, however their rows are spread: each key's story is kept."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duolog.connector.feeds import feed_for, left_over, versioned
from duolog.log.staging import LocalStaging
from tests.unit.feed_rows import Event, Row, Run, batches_of, run

DELTA = pa.schema(
    [
        ("id", pa.int64()),
        ("area", pa.string()),
        ("qty", pa.int32()),
        ("_change_type", pa.string()),
        ("_commit_version", pa.int64()),
        ("_commit_timestamp", pa.timestamp("us", "UTC")),
    ]
)
ICEBERG = pa.schema(
    [
        ("id", pa.int64()),
        ("area", pa.string()),
        ("qty", pa.int32()),
        ("_change_type", pa.string()),
        ("_change_ordinal", pa.int32()),
        ("_commit_snapshot_id", pa.int64()),
        ("_commit_timestamp", pa.timestamp("us", "UTC")),
    ]
)
WORDS = {
    "delta": ("insert", "delete", "update_preimage", "update_postimage"),
    "iceberg": ("INSERT", "DELETE", "UPDATE_BEFORE", "UPDATE_AFTER"),
}
Key = tuple[int, str]
Told = tuple[str, Row | None, Row | None]


@dataclass
class History:
    """A table that tells what is done to it."""

    kind: str
    state: dict[Key, Row] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)  # of the feed, as the table writes them
    stories: dict[Key, list[Told]] = field(default_factory=dict)
    versions: int = 0

    def play(self, chance: random.Random, *, moves: bool) -> None:
        """One more version: each key is touched by one statement at most on its way out."""
        insert, delete, old, new = WORDS[self.kind]
        left: dict[Key, tuple[str, Row]] = {}
        came: dict[Key, tuple[str, Row]] = {}
        kept = dict(self.state)
        said: list[tuple[str, Row]] = []
        for key in chance.sample(sorted(self.state), chance.randint(0, len(self.state))):
            row = self.state[key]
            changed = {**row, "qty": chance.randint(0, 99)}
            what = chance.choice(["update", "delete", "overwrite", *["move"] * moves])
            if what == "move":
                target = chance.choice(KEYS)
                if target in came or (target in kept and target != key):
                    continue
                changed = {**changed, "id": target[0], "area": target[1]}
            elif key in came:
                continue
            del kept[key]
            if what in {"update", "move"}:
                said += [(old, row), (new, changed)]
                left[key], came[_key(changed)] = (old, row), (new, changed)
            else:
                said.append((delete, row))
                left[key] = (delete, row)
                if what == "overwrite":
                    said.append((insert, changed))
                    came[key] = (insert, changed)
        for key in chance.sample(KEYS, chance.randint(0, 3)):
            if key not in kept and key not in came:
                row = {"id": key[0], "area": key[1], "qty": chance.randint(0, 99)}
                said.append((insert, row))
                came[key] = (insert, row)
        for key in sorted({*left, *came}):
            was, now = left.get(key), came.get(key)
            story = self.stories.setdefault(key, [])
            if was and now and was[0] == old and now[0] == new:
                story.append(("update", now[1], was[1]))
                continue
            if was:
                story.append(("delete", None, was[1]))
            if now:
                story.append(("insert", now[1], None))
        self.state = {**kept, **{key: row for key, (_, row) in came.items()}}
        self.rows += [{**row, **self._told(word)} for word, row in said]
        self.versions += 1

    def _told(self, word: str) -> Row:
        version = self.versions
        if self.kind == "delta":
            return {
                "_change_type": word,
                "_commit_version": version,
                "_commit_timestamp": version * 1_000_000,
            }
        return {
            "_change_type": word,
            "_change_ordinal": version,
            "_commit_snapshot_id": 10**15 - version,
            "_commit_timestamp": version * 1_000_000,
        }


KEYS: list[Key] = [(number, area) for number in range(4) for area in ("a", "b")]


def _key(row: Row) -> Key:
    return row["id"], row["area"]


@st.composite
def spread(
    draw: st.DrawFn, keep: Callable[[Row], bool] = lambda _: True, *, moves: bool = True
) -> tuple[History, list[list[pa.RecordBatch]]]:
    """A history, and its rows over some tasks and batches, in or out of the order they came in."""
    history = History(draw(st.sampled_from(["delta", "iceberg"])))
    chance = random.Random(draw(st.integers(0, 2**32)))
    for _ in range(draw(st.integers(1, 6))):
        history.play(chance, moves=moves)
    rows = [row for row in history.rows if keep(row)]
    if draw(st.booleans()):
        chance.shuffle(rows)
    tasks: list[list[Row]] = [[] for _ in range(draw(st.integers(1, 4)))]
    by_chance = draw(st.booleans())
    for at, row in enumerate(rows):
        to = chance.randrange(len(tasks)) if by_chance else at * len(tasks) // len(rows)
        tasks[to].append(row)
    schema = DELTA if history.kind == "delta" else ICEBERG
    size = draw(st.integers(1, 7))
    return history, [batches_of(task, schema, size) for task in tasks]


def run_history(
    history: History, tasks: list[list[pa.RecordBatch]], place: LocalStaging | None = None
) -> Run:
    schema = DELTA if history.kind == "delta" else ICEBERG
    feed = feed_for(
        schema,
        table="shop.stock",
        key_columns=["id", "area"],
    )
    assert feed.found.startswith(history.kind)
    return run(feed, tasks, place)


def stories_of(events: list[Event]) -> dict[Key, list[Told]]:
    stories: dict[Key, list[Told]] = {}
    for event in events:
        row: Any = event.new or event.old
        stories.setdefault(_key(row), []).append((event.op, event.new, event.old))
    return stories


def replayed(events: list[Event]) -> dict[Key, Row]:
    state: dict[Key, Row] = {}
    for event in events:
        if event.new is not None:
            state[_key(event.new)] = event.new
        else:
            assert event.old is not None
            del state[_key(event.old)]
    return state


@settings(max_examples=300, deadline=None)
@given(spread())
def test_each_key_keeps_its_story_however_rows_are_spread(
    made: tuple[History, list[list[pa.RecordBatch]]],
) -> None:
    history, tasks = made
    came = run_history(history, tasks)
    assert stories_of(came.events) == history.stories
    assert replayed(came.events) == history.state
    assert came.counts.old_unknown == 0


@settings(max_examples=60, deadline=None)
@given(spread())
def test_the_same_by_way_of_staged_files_and_buckets(
    made: tuple[History, list[list[pa.RecordBatch]]],
) -> None:
    history, tasks = made
    with small_limits(), tempfile.TemporaryDirectory() as folder:
        came = run_history(history, tasks, LocalStaging(Path(folder)))
    assert stories_of(came.events) == history.stories


@settings(max_examples=100, deadline=None)
@given(
    spread(lambda row: row["_change_type"] not in {"update_preimage", "UPDATE_BEFORE"}, moves=False)
)
def test_updates_without_their_old_images_are_updates_and_are_counted(
    made: tuple[History, list[list[pa.RecordBatch]]],
) -> None:
    history, tasks = made
    came = run_history(history, tasks)
    without_old = {
        key: [(op, new, None if op == "update" else old) for op, new, old in story]
        for key, story in history.stories.items()
    }
    assert stories_of(came.events) == without_old
    assert replayed(came.events) == history.state
    updates = sum(event.op == "update" for event in came.events)
    assert came.counts.old_unknown == updates


@given(spread())
def test_changes_carry_the_time_of_their_version(
    made: tuple[History, list[list[pa.RecordBatch]]],
) -> None:
    history, tasks = made
    came = run_history(history, tasks)
    times = [event.ts_ms for event in came.events]
    assert times == sorted(times)
    assert {time // 1000 for time in times} == {
        row.get("_commit_version", row.get("_change_ordinal")) for row in history.rows
    }


def test_both_images_side_by_side_leave_nothing_to_the_driver() -> None:
    history, chance = History("delta"), random.Random(7)
    for _ in range(20):
        history.play(chance, moves=False)
    came = run_history(history, [batches_of(history.rows, DELTA, 5)])
    assert came.left_over == 0
    assert stories_of(came.events) == history.stories


def test_limits_are_really_small_in_the_test_above(tmp_path: Path) -> None:
    rows = [{**row, "_change_type": "update_postimage"} for row in _inserts(200)]
    with small_limits():
        schema_feed = feed_for(DELTA, table="t", key_columns=["id"])
        reader = schema_feed.reader(LocalStaging(tmp_path))
        for batch in batches_of(rows, DELTA, 10):
            assert list(reader.changes_of(batch)) == []
        assert list(reader.finish()) == []
        message = reader.left_over()
        assert message is not None
        (staged,) = tmp_path.iterdir()
        assert len(message) < staged.stat().st_size
        settled = schema_feed.settle([message], LocalStaging(tmp_path))
        assert sum(len(changes) for _, changes in settled) == 200
        assert settled.counts.old_unknown == 200


def _inserts(count: int) -> list[Row]:
    return [
        {
            "id": number,
            "area": "a",
            "qty": number,
            "_change_type": "insert",
            "_commit_version": 3,
            "_commit_timestamp": 0,
        }
        for number in range(count)
    ]


@contextmanager
def small_limits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(versioned, "_HELD_BYTES", 300)
        patch.setattr(left_over, "MESSAGE_BYTES", 200)
        patch.setattr(left_over, "AT_ONCE_BYTES", 500)
        yield
