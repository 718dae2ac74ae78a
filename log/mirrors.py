"""Mirrors as they are stored: what a partition's is, and each run and skip by itself.

A run is written anew when it grows; the others stay as they are, however many there are.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict
from typing import Any

from duolog.errors import UnsupportedFormat
from duolog.log.keys import (
    mirror_key,
    parse_mirror_key,
    record_base_offset,
    run_key,
    skip_key,
)
from duolog.log.mirror_model import (
    Mirror,
    MirrorTarget,
    OffsetHeader,
    Pruned,
    Run,
    Skip,
    SkipReason,
)
from duolog.log.model import TopicPartition
from duolog.log.store import Store, WriteBatch

VERSION = 1  # of all entries but the mirror's own, and skips
SKIP_VERSION = 2  # 1 knew no skips of damaged batches; others are still written as 1
MIRROR_VERSION = 2  # 1 knew no offset headers, pruning, copies or restored logs

StoredMirror = Mirror
"""Its topic is empty: names change, so the catalogue says it when it is shown."""
StoredMirrors = dict[TopicPartition, StoredMirror]

_RUN = struct.Struct(">BQQQ")
_SKIP = struct.Struct(">BQB")
_REASONS = tuple(SkipReason)  # their order is stored: new ones at the end


def write_mirror(
    batch: WriteBatch, where: TopicPartition, before: StoredMirror | None, now: StoredMirror | None
) -> None:
    """What has changed, into a batch."""
    runs, skips = ((), ()) if now is None else (now.runs, now.skips)
    old_runs, old_skips = ((), ()) if before is None else (before.runs, before.skips)
    if now is None:
        batch.delete("mirror", mirror_key(where))
    else:
        batch.put("mirror", mirror_key(where), _pack_mirror(now))
    if now is not None and before is not None and now.pruned != before.pruned:
        old_runs, old_skips = _prune(batch, where, before, now)
    for run in old_runs[_same(old_runs, runs) :]:
        batch.delete("mirror", run_key(where, run.first_log_offset))
    for run in runs[_same(old_runs, runs) :]:
        batch.put("mirror", run_key(where, run.first_log_offset), _pack_run(run))
    for skip in old_skips[_same(old_skips, skips) :]:
        batch.delete("mirror", skip_key(where, skip.first_log_offset))
    for skip in skips[_same(old_skips, skips) :]:
        batch.put("mirror", skip_key(where, skip.first_log_offset), _pack_skip(skip))


def _prune(
    batch: WriteBatch, where: TopicPartition, before: StoredMirror, now: StoredMirror
) -> tuple[tuple[Run, ...], tuple[Skip, ...]]:
    """Delete what is before the first ones now; what is left of those before."""
    runs = _before(before.runs, now.runs)
    skips = _before(before.skips, now.skips)
    for run in before.runs[:runs]:
        batch.delete("mirror", run_key(where, run.first_log_offset))
    for skip in before.skips[:skips]:
        batch.delete("mirror", skip_key(where, skip.first_log_offset))
    return before.runs[runs:], before.skips[skips:]


def _before(old: tuple[Run, ...] | tuple[Skip, ...], now: tuple[Run | Skip, ...]) -> int:
    """How many of the old ones lie before the first one now."""
    if not now:
        return len(old)
    return sum(each.first_log_offset < now[0].first_log_offset for each in old)


def load_mirrors(store: Store) -> StoredMirrors:
    return {
        parse_mirror_key(key): _load(store, parse_mirror_key(key), packed)
        for key, packed in store.scan("mirror", b"m", b"n")
    }


def _load(store: Store, where: TopicPartition, packed: bytes) -> StoredMirror:
    fields = json.loads(packed)
    _check_version(fields["v"], MIRROR_VERSION)
    beyond = TopicPartition(where.topic_id, where.partition + 1)
    runs = store.scan("mirror", run_key(where, 0), run_key(beyond, 0))
    skips = store.scan("mirror", skip_key(where, 0), skip_key(beyond, 0))
    return Mirror(
        "",
        where.partition,
        fields["version"],
        MirrorTarget(**fields["target"]),
        tuple(_unpack_run(*entry) for entry in runs),
        tuple(_unpack_skip(*entry) for entry in skips),
        tuple(OffsetHeader(*each) for each in fields.get("offset_headers", ())),
        Pruned(*fields.get("pruned", ())),
        fields.get("copied_at"),
        fields.get("settled_upto", 0),
    )


def _same(before: tuple[Any, ...], now: tuple[Any, ...]) -> int:
    """How many of the first are the same."""
    if before and len(now) >= len(before) and now[len(before) - 1] == before[-1]:
        return len(before)  # what is in order and ends alike was only added to
    shorter = min(len(before), len(now))
    return next((at for at in range(shorter) if before[at] != now[at]), shorter)


def _pack_mirror(mirror: StoredMirror) -> bytes:
    fields = {
        "v": MIRROR_VERSION,
        "version": mirror.version,
        "target": asdict(mirror.target),
        "offset_headers": [[each.first_log_offset, each.name] for each in mirror.offset_headers],
        "pruned": list(asdict(mirror.pruned).values()),
        "copied_at": mirror.copied_at,
        "settled_upto": mirror.settled_upto,
    }
    return json.dumps(fields, separators=(",", ":")).encode()


def _pack_run(run: Run) -> bytes:
    return _RUN.pack(VERSION, run.first_kafka_offset, run.count, run.skipped_before)


def _unpack_run(key: bytes, packed: bytes) -> Run:
    version, first_kafka_offset, count, skipped_before = _RUN.unpack(packed)
    _check_version(version)
    return Run(record_base_offset(key[1:]), first_kafka_offset, count, skipped_before)


def _pack_skip(skip: Skip) -> bytes:
    version = SKIP_VERSION if skip.reason is SkipReason.DAMAGED else VERSION
    return _SKIP.pack(version, skip.count, _REASONS.index(skip.reason))


def _unpack_skip(key: bytes, packed: bytes) -> Skip:
    version, count, reason = _SKIP.unpack(packed)
    _check_version(version, SKIP_VERSION)
    return Skip(record_base_offset(key[1:]), count, _REASONS[reason])


def _check_version(version: int, highest: int = VERSION) -> None:
    if not 1 <= version <= highest:
        raise UnsupportedFormat(f"A mirror is stored as version {version}. Use a newer Duolog.")
