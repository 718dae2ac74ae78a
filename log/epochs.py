"""What is remembered of each writer's last epoch, and the pure rules for the next one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from duolog.errors import (
    EpochContentMismatch,
    EpochGap,
    EpochTooOld,
    InvalidRequest,
    UnsupportedFormat,
)
from duolog.log.keys import after_prefix, epoch_key
from duolog.log.model import Appended, Mode, OffsetRange, Writer
from duolog.log.names import check_unicode
from duolog.log.part import Fingerprint
from duolog.log.store import Store
from duolog.log.timestamps import LATEST_TIME_MS

VERSION = 1
MAX_NOTE_CHARACTERS = 1000
Fingerprints = Mapping[int, Fingerprint]  # by topic id


@dataclass(frozen=True, slots=True)
class StoredEpoch:
    """A writer's last epoch: the offsets that it got, and what it held."""

    epoch: int
    ranges: tuple[OffsetRange, ...]
    fingerprints: dict[int, Fingerprint]
    duplicates_dropped: int
    at_ms: int
    note: str = ""
    stored_at_ms: int | None = None  # this and the next one were not stored at first
    writer: str | None = None

    def answer(self, *, repeated: bool) -> Appended:
        return Appended(
            self.epoch, self.ranges, self.at_ms, repeated, self.duplicates_dropped, self.note
        )


def check_note(note: object) -> None:
    if not isinstance(note, str) or len(note) > MAX_NOTE_CHARACTERS:
        raise InvalidRequest(
            f"An epoch's note is text of at most {MAX_NOTE_CHARACTERS} characters. Shorten it."
        )
    check_unicode(note, "note of an epoch")


def check_at(at_ms: object) -> None:
    """When an epoch was made: it comes back to its writer, and rows get it as their time."""
    if at_ms is not None and (type(at_ms) is not int or not 0 <= at_ms <= LATEST_TIME_MS):
        raise InvalidRequest(
            f"at_ms must be a whole number of milliseconds since 1970; got {at_ms!a:.40}."
        )


def is_repeat(
    writer: Writer,
    epoch: int,
    fingerprints: Fingerprints,
    last: StoredEpoch | None,
    *,
    begin_anywhere: bool = False,
) -> bool:
    """Whether this epoch has been written before; an epoch that must not be written raises."""
    if last is None:
        if writer.mode is Mode.STREAM and epoch != 0 and not begin_anywhere:
            raise EpochGap(
                f"{_shown(writer)} starts with epoch {epoch}, but this log has nothing of it. "
                "The checkpoint is older than the log, or belongs to another one. Use the log it "
                "was made with, start with a new checkpoint, or let the stream begin anywhere."
            )
        return False
    if epoch == last.epoch:
        if dict(fingerprints) == last.fingerprints:
            return True
        raise EpochContentMismatch(
            f"{_shown(writer)} sends epoch {epoch} again with other content "
            f"({_difference(last.fingerprints, fingerprints)}). What was written first stays. "
            + (
                "The checkpoint was lost, restored or damaged, so the batch was planned anew: go "
                f"on from a checkpoint that has committed epoch {epoch}, or write under a new name."
                if writer.mode is Mode.STREAM
                else "The job's input has changed since: give its next run a higher txnVersion."
            )
        )
    if epoch < last.epoch:
        raise EpochTooOld(
            f"{_shown(writer)} sends epoch {epoch}, but has committed {last.epoch}. "
            + (
                "A new or restored checkpoint runs under an old name: go on from the checkpoint "
                f"that has committed {last.epoch}, or write under a new name."
                if writer.mode is Mode.STREAM
                else "An older run was started again: give it a txnVersion above that."
            )
        )
    if writer.mode is Mode.STREAM and epoch > last.epoch + 1:
        raise EpochGap(
            f"{_shown(writer)} sends epoch {epoch} after {last.epoch}: "
            f"{epoch - last.epoch - 1} are missing. Was this log restored from a backup? Go on "
            f"from a checkpoint that has committed {last.epoch}."
        )
    return False


def pack_epoch(stored: StoredEpoch) -> bytes:
    return json.dumps(
        {
            "v": VERSION,
            "epoch": stored.epoch,
            "ranges": [[r.topic, r.partition, r.start, r.next_offset] for r in stored.ranges],
            "fingerprints": {
                topic_id: [f.routed, f.filtered_out, f.content]
                for topic_id, f in stored.fingerprints.items()
            },
            "duplicates_dropped": stored.duplicates_dropped,
            "at": stored.at_ms,
            **({"note": stored.note} if stored.note else {}),
            **({} if stored.stored_at_ms is None else {"stored_at": stored.stored_at_ms}),
            **({} if stored.writer is None else {"writer": stored.writer}),
        },
        separators=(",", ":"),
    ).encode()


def unpack_epoch(packed: bytes) -> StoredEpoch:
    fields = json.loads(packed)
    if fields["v"] != VERSION:
        raise UnsupportedFormat(f"An epoch is stored as version {fields['v']}. Use a newer Duolog.")
    return StoredEpoch(
        fields["epoch"],
        tuple(OffsetRange(*range_) for range_ in fields["ranges"]),
        {int(topic): Fingerprint(*f) for topic, f in fields["fingerprints"].items()},
        fields["duplicates_dropped"],
        fields["at"],
        fields.get("note", ""),
        fields.get("stored_at"),
        fields.get("writer"),
    )


def load_epoch(store: Store, writer: Writer) -> StoredEpoch | None:
    """A writer's last epoch."""
    return next((stored for _, stored in find_epochs(store, writer)), None)


def find_epochs(store: Store, writer: Writer) -> Iterator[tuple[bytes, StoredEpoch]]:
    """Where a writer's last epoch is, with its key, and then where an older Duolog has put it.

    What lies there may be another writer's: it is this one's unless it says whose it is.
    """
    for name in dict.fromkeys((str(writer), writer.former_name)):
        key = epoch_key(name)
        stored = load_epoch_at(store, key)
        if stored is None:
            continue
        if stored.writer == str(writer) or (stored.writer is None and name == writer.former_name):
            yield key, stored


def load_epoch_at(store: Store, key: bytes) -> StoredEpoch | None:
    """What is stored under one key."""
    packed = store.get("epochs", key)
    return None if packed is None else unpack_epoch(packed)


class CommittedEpochs(Mapping[str, int]):
    """The last epoch of every writer. Nothing is read before it is asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __iter__(self) -> Iterator[str]:
        prefix = epoch_key("")
        keys = self._store.scan_keys("epochs", prefix, after_prefix(prefix))
        return (key[len(prefix) :].decode() for key in keys)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, writer: str) -> int:
        stored = load_epoch_at(self._store, epoch_key(writer))
        if stored is None:
            raise KeyError(writer)
        return stored.epoch


def _shown(writer: Writer) -> str:
    what = "Stream" if writer.mode is Mode.STREAM else "Batch writer"
    return f"{what} '{writer.name}' to '{writer.target}'"


def _difference(first: Fingerprints, second: Fingerprints) -> str:
    for topic_id in sorted({*first, *second}):
        was, now = first.get(topic_id, Fingerprint()), second.get(topic_id, Fingerprint())
        if was.routed != now.routed:
            return f"topic {topic_id} had {was.routed} rows, now {now.routed}"
        if was.filtered_out != now.filtered_out:
            return f"topic {topic_id} left out {was.filtered_out} rows, now {now.filtered_out}"
        if was.content != now.content:
            return f"topic {topic_id} has as many rows, but other keys or values"
    return "the same rows"
