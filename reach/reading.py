"""Reads over the wire: batches come encoded, and are decoded and cut to the limits here.

What a read took only a part of is kept, so that small reads do not bring a batch again and again.
The host is asked each time all the same: it alone knows what is still there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from duolog.errors import DamagedBatch, DamagedLog, HostFailed
from duolog.log.access import TopicRef
from duolog.log.cache import BatchCache
from duolog.log.damage_model import DamagedOffsets, LeftOut, reason_of
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


LookForDamage = Callable[[TopicRef, int, int], DamagedOffsets | None]
"""Asks the host whether it cannot decode the batch at an offset either."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """A partition when it was last read from."""

    where: TopicPartition
    latest: int


class RemoteReader:
    """Reads through a host. Safe for many threads."""

    def __init__(
        self, connection: HostConnection, cache_bytes: int, look_for_damage: LookForDamage
    ) -> None:
        self._connection = connection
        self._look_for_damage = look_for_damage
        self._seen: dict[tuple[TopicRef, int], _Seen] = {}
        self.cache = BatchCache(cache_bytes)

    def fetch(
        self,
        reference: TopicRef,
        partition: int,
        offset: int,
        max_records: int,
        max_bytes: int,
        *,
        skip_damaged: bool = False,
    ) -> Fetched:
        """Records from an offset on; at least one if there is one."""
        check_limits(max_records, max_bytes)
        plan = self._held(reference, partition, offset, max_records)
        limits = max_records, min(max_bytes, _MAX_ENCODED_BYTES)
        wanted = reference, partition, offset, *limits
        try:
            first = self.fetch_encoded(*wanted, skip_damaged=skip_damaged, **plan)
        except DamagedBatch:
            if not plan:
                raise
            first = self.fetch_encoded(*wanted)  # it lies behind what is held
        check_in_range(first.topic, partition, offset, first.earliest, first.latest)
        where = TopicPartition(first.topic_id, partition)
        self._remember(reference, partition, _Seen(where, first.latest))
        brought = list(first.batches)

        def batch_at(at: int) -> tuple[int, Any, int] | LeftOut:
            cached = self.cache.find(where, at)
            if cached is not None:
                return cached
            if not _holding(brought, at):
                more = self.fetch_encoded(
                    first.topic_id,
                    partition,
                    at,
                    max_records,
                    _MAX_ENCODED_BYTES,
                    skip_damaged=skip_damaged,
                )
                brought.extend(more.batches)
            found = _holding(brought, at)
            if found is None:
                raise HostFailed(
                    f"The host gave no record for offset {at} of topic '{first.topic}' partition "
                    f"{partition}, although it reaches {first.latest}. Read again."
                )
            if found.is_hole:
                return found.left_out(at, found.next_offset)
            try:
                records = found.decode().records
            except DamagedLog as error:
                if skip_damaged:
                    return LeftOut(at, found.next_offset, True, reason_of(error))
                raise self._damaged(first, found, at) from error
            return found.base_offset, records, int(records.nbytes)

        def keep(base: int, records: Any, all_taken: bool) -> None:
            if not all_taken:
                self.cache.add(where, base, records)

        taken = take(
            batch_at,
            keep,
            offset,
            first.latest,
            max_records,
            max_bytes,
            skip_damaged=skip_damaged,
        )
        return Fetched(
            first.topic,
            partition,
            taken.next_offset,
            first.earliest,
            first.latest,
            batches=taken.batches,
            left_out=taken.left_out,
        )

    def fetch_encoded(
        self,
        reference: TopicRef,
        partition: int,
        offset: int,
        max_records: int,
        max_bytes: int,
        *,
        skip_damaged: bool = False,
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
                **({"skip_damaged": True} if skip_damaged else {}),
                **held,
            }
        )
        path = f"{PREFIX}/fetch?arguments={quote(json.dumps(arguments))}"
        request = Request("GET", path, f"read topic {reference!r} partition {partition!r}")
        return from_frames(self._connection.ask(request, may_repeat=True).content)

    def _damaged(self, of: FetchedEncoded, batch: EncodedBatch, at: int) -> Exception:
        """The host looks for itself, and remembers it."""
        found = self._look_for_damage(of.topic_id, of.partition, at)
        if found is None:
            return HostFailed(
                f"A batch of topic '{of.topic}' partition {of.partition} at offset "
                f"{batch.base_offset} came damaged, and the host can read it. Read again; if it "
                "stays so, something between this program and the host changes what it sends."
            )
        return DamagedBatch(
            topic=found.topic,
            partition=found.partition,
            first_offset=found.first_offset,
            next_offset=found.next_offset,
            reason=found.reason,
        )

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
