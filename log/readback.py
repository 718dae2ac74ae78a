"""Reads a partition's latest records back, for what is kept in memory about them."""

from __future__ import annotations

from collections.abc import Iterator

from duolog.log.batch import decode
from duolog.log.dedup import ReadBack
from duolog.log.keys import record_base_offset, record_key
from duolog.log.model import TopicPartition
from duolog.log.state import State
from duolog.log.times import first_reaching

_PAGE_BYTES = 8 << 20


def read_back(state: State) -> ReadBack:
    """A reader of this log for `LatestChanges`."""

    def records_since(
        where: TopicPartition, from_ms: int
    ) -> Iterator[tuple[bytes | None, int, int, str | None, bytes | None, int]]:
        head = state.heads.get(where)
        first = first_reaching(state.store, where, from_ms)
        at = head.next_offset if first is None else max(first.base_offset, head.start)
        while at < head.next_offset:
            page = state.store.scan(
                "records",
                record_key(where, at),
                record_key(where, head.next_offset),
                max_bytes=_PAGE_BYTES,
            )
            for key, encoded in page:
                base, records = record_base_offset(key), decode(encoded)
                columns = [
                    records.column(name).to_pylist()
                    for name in ("key", "ts", "op", "table", "value")
                ]
                yield from zip(*columns, range(base, base + records.num_rows), strict=True)
                at = base + records.num_rows
            if not page:
                break

    return records_since
