"""Reads a partition's stored batches page by page, while small ones are merged.

A merge puts one batch in the place of several, so the offset at which a page should begin may lie
within a batch by then. A page therefore begins with the batch that holds its first offset, and is
read from one snapshot of the store.
"""

from __future__ import annotations

from duolog.log.keys import record_base_offset, record_key
from duolog.log.model import TopicPartition
from duolog.log.store import Store


def batches_from(
    store: Store, tp: TopicPartition, offset: int, stop: int, *, max_bytes: int
) -> list[tuple[int, bytes]]:
    """Base offsets and bytes of batches before `stop`; at least one from `offset` on, if there is.

    If no batch begins at `offset`, the one before comes first: it holds `offset`, or ends before.
    """
    page = store.scan_holding(
        "records",
        record_key(tp, offset),
        record_key(tp, 0),
        record_key(tp, stop),
        max_bytes=max_bytes,
    )
    return [(record_base_offset(key), encoded) for key, encoded in page]
