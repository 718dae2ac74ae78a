"""Reads over the wire: batches come encoded, and are decoded and cut to the limits here.

What a read took only a part of is kept, so that small reads do not bring a batch again and again.
The host is asked each time all the same: it alone knows what is still there.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from duolog.errors import HostFailed
from duolog.log.access import TopicRef
from duolog.log.cache import BatchCache
from duolog.log.fetched import EncodedBatch, Fetched, FetchedEncoded
from duolog.log.model import TopicPartition
from duolog.log.taking import check_in_range, check_limits, take
from duolog.reach.connection import HostConnection
from duolog.reach.exchange import Request
from duolog.reach.frames import from_frames
from duolog.reach.protocol import PREFIX
from duolog.reach.wire import to_wire

_MAX_ENCODED_BYTES: Final = 1 << 20  # at once: more could be brought in vain
_MOST_KNOWN: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Seen:
    """A partition when it was last read from."""

    where: TopicPartition
    latest: int


class RemoteReader:
    """Reads through a host. Safe for many threads."""

    def __init__(self, connection: HostConnection, cache_bytes: int) -> None:
        self._connection = connection
        self._seen: dict[tuple[TopicRef, int], _Seen] = {}
        self.cache = BatchCache(cache_bytes)

    def fetch(
        self, reference: TopicRef, partition: int, offset: int, max_records: int, max_bytes: int
    ) -> Fetched:
        """Records from an offset on; at least one if there is one."""
        check_limits(max_records, max_bytes)
        plan = self._held(reference, partition, offset, max_records)
        first = self.fetch_encoded(
            reference, partition, offset, max_records, min(max_bytes, _MAX_ENCODED_BYTES), **plan
        )
        check_in_range(first.topic, partition, offset, first.earliest, first.latest)
        where = TopicPartition(first.topic_id, partition)
        self._remember(reference, partition, _Seen(where, first.latest))
        brought = list(first.batches)

        def batch_at(at: int) -> tuple[int, Any, int]:
            cached = self.cache.find(where, at)
            if cached is not None:
                return cached
            if not _holding(brought, at):
                more = self.fetch_encoded(
                    first.topic_id, partition, at, max_records, _MAX_ENCODED_BYTES
                )
                brought.extend(more.batches)
            found = _holding(brought, at)
            if found is None:
                raise HostFailed(
                    f"The host gave no record for offset {at} of topic '{first.topic}' partition "
                    f"{partition}, although it reaches {first.latest}. Read again."
                )
            records = found.decode().records
            return found.base_offset, records, int(records.nbytes)

        def keep(base: int, records: Any, all_taken: bool) -> None:
            if not all_taken:
                self.cache.add(where, base, records)

        end = min(first.latest, offset + max_records)
        batches = take(batch_at, keep, offset, end, max_records, max_bytes)
        return Fetched(
            first.topic,
            partition,
            batches[-1].next_offset if batches else offset,
            first.earliest,
            first.latest,
            batches=tuple(batches),
        )

    def fetch_encoded(
        self,
        reference: TopicRef,
        partition: int,
        offset: int,
        max_records: int,
        max_bytes: int,
        **held: int,
    ) -> FetchedEncoded:
        """Whole batches as the host has them."""
        arguments = to_wire(
            {
                "reference": reference,
                "partition": partition,
                "offset": offset,
                "max_records": max_records,
                "max_bytes": max_bytes,
                **held,
            }
        )
        path = f"{PREFIX}/fetch?arguments={quote(json.dumps(arguments))}"
        request = Request("GET", path, f"read topic {reference!r} partition {partition!r}")
        return from_frames(self._connection.ask(request, may_repeat=True).content)

    def _held(
        self, reference: TopicRef, partition: int, offset: int, max_records: int
    ) -> dict[str, int]:
        """What need not be brought: up to where the cache holds on, of which topic."""
        seen = self._seen.get((reference, partition)) if isinstance(reference, str | int) else None
        if seen is None or type(offset) is not int or type(partition) is not int:
            return {}
        upto = self.cache.held_upto(seen.where, offset, min(seen.latest, offset + max_records))
        return {"held_topic_id": seen.where.topic_id, "held_upto": upto} if upto > offset else {}

    def _remember(self, reference: TopicRef, partition: int, seen: _Seen) -> None:
        if len(self._seen) >= _MOST_KNOWN:
            self._seen.clear()
        self._seen[reference, partition] = seen


def _holding(batches: list[EncodedBatch], offset: int) -> EncodedBatch | None:
    for batch in reversed(batches):
        if batch.base_offset <= offset < batch.next_offset:
            return batch
    return None
