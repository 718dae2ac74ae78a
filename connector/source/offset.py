"""The offset of a stream, as it lies in Spark's checkpoint.

    {"version": 1, "log": "<id>", "topics": {"orders": 3}, "offsets": {"orders": {"0": 23}},
     "from": {"orders": {"0": 20}}}

`offsets` is what Kafka's source has there: for each partition the next offset to read. `topics`
holds ids, since a topic that was dropped and made again is another one. `from` is only in a
query's first offset: where the query began. Spark keeps a first batch's end and not its start, and
would otherwise ask again where to begin when it has to run that batch again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from duolog.connector.source.choice import Place
from duolog.errors import UnsupportedFormat

VERSION: Final = 1
_INITIAL: Final = "initial"


@dataclass(frozen=True, slots=True)
class StreamOffset:
    """Where a stream is. `begin` says where it began; `is_initial` that this is the beginning."""

    log_id: str
    positions: Mapping[Place, int]
    begin: Mapping[Place, int] | None = None
    is_initial: bool = False

    def to_json(self) -> dict[str, Any]:
        """What Spark stores. The same offset is the same text."""
        places = sorted(self.positions)
        found: dict[str, Any] = {
            "version": VERSION,
            "log": self.log_id,
            "topics": {place.topic: place.topic_id for place in places},
            "offsets": _by_topic(self.positions),
        }
        if self.begin is not None:
            found["from"] = _by_topic(self.begin)
        if self.is_initial:
            found[_INITIAL] = True
        return found

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> StreamOffset:
        """What was stored; UnsupportedFormat for another source's or a newer one's."""
        version = stored.get("version")
        if version != VERSION:
            raise UnsupportedFormat(
                f"This checkpoint holds an offset of version {version!r}; this Duolog reads "
                f"{VERSION}. It belongs to another source, or to a newer Duolog: take a new "
                "checkpoint, or use that one."
            )
        ids = stored["topics"]
        began = stored.get("from")
        return cls(
            stored["log"],
            _places(stored["offsets"], ids),
            None if began is None else _places(began, ids),
            bool(stored.get(_INITIAL, False)),
        )


def _by_topic(positions: Mapping[Place, int]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for place in sorted(positions):
        found.setdefault(place.topic, {})[str(place.partition)] = positions[place]
    return found


def _places(offsets: Mapping[str, Mapping[str, int]], ids: Mapping[str, int]) -> dict[Place, int]:
    return {
        Place(topic, ids[topic], int(partition)): offset
        for topic, partitions in offsets.items()
        for partition, offset in partitions.items()
    }
