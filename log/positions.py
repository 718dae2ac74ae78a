"""Group positions as they are kept, and the pure rules by which they move."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from duolog.errors import InvalidRequest, PositionChanged, UnsupportedFormat
from duolog.log.groups_seen import KafkaSeen, KafkaWrite
from duolog.log.keys import parse_group_key
from duolog.log.model import Side, TopicPartition
from duolog.log.store import Store

VERSION = 1
VERSION_WITH_KAFKA = 2


@dataclass(frozen=True, slots=True)
class StoredPosition:
    """One group's next offset in one partition. `version` grows with each move.

    What is remembered of Kafka's side changes without it: for consumers nothing has moved then.
    """

    position: int
    version: int
    changed_at_ms: int
    changed_by: Side
    kafka: KafkaSeen | None = None
    is_first: bool = False  # where the group begins: nobody has acknowledged or moved it
    used_at_ms: int = 0
    """Somebody read for the group then; noted now and then, at one of its places."""
    begun_by: str | None = None  # the token that began the group, where there was one


PositionKey = tuple[str, TopicPartition]


class Positions:
    """Of all groups, each found without a look at the others. One thread changes them; all read."""

    def __init__(self, known: Iterable[tuple[PositionKey, StoredPosition]] = ()) -> None:
        self._groups: dict[str, dict[TopicPartition, StoredPosition]] = {}
        self._begun_by: dict[str, str] = {}  # tokens by their groups
        self._groups_of_token: Counter[str] = Counter()
        for key, position in known:
            self.put(key, position)

    def get(self, key: PositionKey) -> StoredPosition | None:
        group, where = key
        return self._groups.get(group, {}).get(where)

    def put(self, key: PositionKey, position: StoredPosition | None) -> None:
        """None: it is forgotten."""
        group, where = key
        held = self._groups.setdefault(group, {})
        if position is not None:
            held[where] = position
            if position.begun_by is not None and group not in self._begun_by:
                token = self._begun_by[group] = sys.intern(position.begun_by)
                self._groups_of_token[token] += 1
        else:
            held.pop(where, None)
        if not held:
            del self._groups[group]
            self._forget_beginner(group)

    def _forget_beginner(self, group: str) -> None:
        token = self._begun_by.pop(group, None)
        if token is not None:
            self._groups_of_token[token] -= 1
            if not self._groups_of_token[token]:
                del self._groups_of_token[token]

    def beginner(self, group: str) -> str | None:
        """The token that began a group; None for one that nobody's token began."""
        return self._begun_by.get(group)

    def begun_by(self, token: str) -> int:
        """How many groups there are that a token began."""
        return self._groups_of_token[token]

    def __len__(self) -> int:
        """How many groups have a position anywhere."""
        return len(self._groups)

    def __contains__(self, group: object) -> bool:
        return group in self._groups

    def groups(self) -> list[str]:
        """The groups that have a position anywhere."""
        return list(self._groups)

    def of_group(self, group: str) -> list[tuple[PositionKey, StoredPosition]]:
        held = self._groups.get(group, {}).copy()
        return [((group, where), position) for where, position in held.items()]

    def all(self) -> list[tuple[PositionKey, StoredPosition]]:
        return [each for group in self._groups.copy() for each in self.of_group(group)]


def last_used_ms(positions: Iterable[StoredPosition]) -> int:
    """When a group with these positions was used last, as far as that is stored."""
    return max((max(each.changed_at_ms, each.used_at_ms) for each in positions), default=0)


def acknowledged(
    current: StoredPosition | None, position: int, now_ms: int, side: Side
) -> StoredPosition:
    """After an acknowledgement: never further back than before."""
    if current is not None and position <= current.position:
        return current
    return moved(current, position, now_ms, side)


def moved(current: StoredPosition | None, position: int, now_ms: int, side: Side) -> StoredPosition:
    """After a move to any place."""
    if current is None:
        return StoredPosition(position, 1, now_ms, side)
    return replace(
        current,
        position=position,
        version=current.version + 1,
        changed_at_ms=now_ms,
        changed_by=side,
        is_first=False,
    )


def first(position: int, now_ms: int, begun_by: str | None = None) -> StoredPosition:
    """Where a group begins that has no position yet."""
    return StoredPosition(position, 1, now_ms, Side.NATIVE, is_first=True, begun_by=begun_by)


def check_version(current: StoredPosition | None, expected: int) -> None:
    """Compare-and-set: version 0 expects that the group has no position yet."""
    found = 0 if current is None else current.version
    if found != expected:
        raise PositionChanged(
            f"The position has version {found}, not {expected}: somebody else moved it. Read it "
            "again and decide anew."
        )


def check_storable(side: object, seen: object = None) -> None:
    """Refuse what could be stored and not be loaded again: then the log would not open."""
    if type(side) is not Side:
        raise InvalidRequest(f"A group is moved by a Side; got {side!a:.40}.")
    if seen is None:
        return
    try:
        if not isinstance(seen, KafkaSeen) or _unpack_seen(json.loads(_pack_seen(seen))) != seen:
            raise InvalidRequest(f"What Kafka holds is a KafkaSeen; got {seen!a:.200}.")
    except (TypeError, ValueError):
        raise InvalidRequest(f"What Kafka holds cannot be stored: {seen!a:.200}.") from None


def pack_position(position: StoredPosition) -> bytes:
    stored: dict[str, Any] = {
        "v": VERSION,
        "position": position.position,
        "version": position.version,
        "at": position.changed_at_ms,
        "by": position.changed_by,
    }
    if position.kafka is not None:
        stored |= {"v": VERSION_WITH_KAFKA, "kafka": asdict(position.kafka)}
    if position.is_first:  # an older Duolog passes over it, and takes it for any other position
        stored["first"] = True
    if position.used_at_ms:  # passed over as well
        stored["used"] = position.used_at_ms
    if position.begun_by is not None:  # passed over as well
        stored["begun_by"] = position.begun_by
    return json.dumps(stored, separators=(",", ":")).encode()


def _pack_seen(seen: KafkaSeen) -> str:
    return json.dumps(asdict(seen))


def unpack_position(packed: bytes) -> StoredPosition:
    fields = json.loads(packed)
    if fields["v"] not in {VERSION, VERSION_WITH_KAFKA}:
        raise UnsupportedFormat(
            f"A group position is stored as version {fields['v']}. Use a newer Duolog."
        )
    return StoredPosition(
        fields["position"],
        fields["version"],
        fields["at"],
        Side(fields["by"]),
        _unpack_seen(fields["kafka"]) if fields["v"] == VERSION_WITH_KAFKA else None,
        bool(fields.get("first", False)),
        int(fields.get("used", 0)),
        fields.get("begun_by"),
    )


def _unpack_seen(fields: dict[str, Any]) -> KafkaSeen:
    writing = fields.pop("writing")
    return KafkaSeen(**fields, writing=None if writing is None else KafkaWrite(**writing))


def load_positions(store: Store) -> Positions:
    stored = store.scan("groups", b"", b"\xff" * 300)
    return Positions((parse_group_key(key), unpack_position(packed)) for key, packed in stored)
