"""What is wanted of mirrors as it is stored: a mode for all topics, and those of single ones."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from duolog.errors import UnsupportedFormat
from duolog.log.keys import mirror_mode_key, parse_mirror_mode_key
from duolog.log.mirror_modes import MirrorMode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from duolog.log.store import Store, WriteBatch

VERSION = 1


@dataclass(frozen=True, slots=True)
class StoredModes:
    """Modes by the topic's id; a topic that has none of its own has the usual one."""

    usual: MirrorMode = MirrorMode.ON
    of_topic: Mapping[int, MirrorMode] = field(default_factory=lambda: MappingProxyType({}))

    def of(self, topic_id: int) -> MirrorMode:
        return self.of_topic.get(topic_id, self.usual)

    def without(self, topic_id: int) -> StoredModes:
        """After a topic was dropped."""
        left = {other: mode for other, mode in self.of_topic.items() if other != topic_id}
        return replace(self, of_topic=left)

    def with_topic(self, topic_id: int, mode: MirrorMode) -> StoredModes:
        """With the mode of one topic."""
        left = dict(self.without(topic_id).of_topic)
        return replace(self, of_topic=left if mode is self.usual else {**left, topic_id: mode})

    def with_all(self, mode: MirrorMode, topic_ids: Iterable[int]) -> StoredModes:
        """With the mode of all topics.

        Pausing and resuming hold for topics to come too, and leave detached ones as they are;
        detaching holds for those that there are.
        """
        if mode is MirrorMode.DETACHED:
            return replace(self, of_topic=dict.fromkeys(topic_ids, mode))
        detached = {i: m for i, m in self.of_topic.items() if m is MirrorMode.DETACHED}
        return StoredModes(mode, detached)


def write_modes(batch: WriteBatch, before: StoredModes, now: StoredModes) -> None:
    """What has changed, into a batch."""
    old, new = _entries(before), _entries(now)
    for topic_id in old.keys() - new.keys():
        batch.delete("mirror", mirror_mode_key(topic_id))
    for topic_id, mode in new.items():
        if old.get(topic_id) is not mode:
            stored = json.dumps({"v": VERSION, "mode": mode.value}, separators=(",", ":"))
            batch.put("mirror", mirror_mode_key(topic_id), stored.encode())


def load_modes(store: Store) -> StoredModes:
    found: dict[int | None, MirrorMode] = {}
    for key, stored in store.scan("mirror", b"c", b"d"):
        fields = json.loads(stored)
        if fields["v"] != VERSION:
            raise UnsupportedFormat(
                f"What is wanted of a mirror is stored as version {fields['v']}. Use a newer "
                "Duolog."
            )
        found[parse_mirror_mode_key(key)] = MirrorMode(fields["mode"])
    usual = found.pop(None, MirrorMode.ON)
    return StoredModes(usual, {i: mode for i, mode in found.items() if i is not None})


def _entries(modes: StoredModes) -> dict[int | None, MirrorMode]:
    entries: dict[int | None, MirrorMode] = dict(modes.of_topic.items())
    if modes.usual is not MirrorMode.ON:
        entries[None] = modes.usual
    return entries
