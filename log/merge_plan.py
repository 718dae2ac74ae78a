"""Which stored batches of a partition become one. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from duolog.log.batch import TARGET_BYTES
from duolog.log.model import Retention
from duolog.log.times import TimedBatch

SMALL_BYTES: Final = 128 << 10
"""A stored batch below this size may be merged with its neighbours."""

_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS
_SHARE_OF_RETENTION: Final = 10


def plan_merges(
    batches: Sequence[TimedBatch], retention: Retention
) -> tuple[tuple[TimedBatch, ...], ...]:
    """Groups of two and more from a partition's last batches, all of them small, in their order.

    Retention takes whole batches, so a group stays within a tenth of what is kept. The last group
    may still grow: of it, a batch that is larger than all behind it stays as it is. So a record is
    written again a few times only, however many small batches come.
    """
    groups = _grouped(batches, retention)
    if groups:
        groups[-1] = _without_large_beginning(groups[-1])
    return tuple(tuple(group) for group in groups if len(group) > 1)


def _grouped(batches: Sequence[TimedBatch], retention: Retention) -> list[list[TimedBatch]]:
    span_ms, most_bytes = _span_ms(retention), _most_bytes(retention)
    groups: list[list[TimedBatch]] = []
    size = 0
    for batch in batches:
        # Stretches of time are fixed: after its last batch, a group would grow for ever.
        fits = (
            bool(groups)
            and size + batch.size.length <= most_bytes
            and groups[-1][-1].running_max_ms // span_ms == batch.running_max_ms // span_ms
        )
        if fits:
            groups[-1].append(batch)
            size += batch.size.length
        else:
            groups.append([batch])
            size = batch.size.length
    return groups


def _without_large_beginning(group: list[TimedBatch]) -> list[TimedBatch]:
    behind = sum(batch.size.length for batch in group)
    for at, batch in enumerate(group):
        behind -= batch.size.length
        if batch.size.length <= behind:
            return group[at:]
    return []


def _span_ms(retention: Retention) -> int:
    if retention.seconds is None:
        return _DAY_MS
    return max(1, min(_HOUR_MS, int(retention.seconds * 1000) // _SHARE_OF_RETENTION))


def _most_bytes(retention: Retention) -> int:
    if retention.max_bytes is None:
        return TARGET_BYTES
    return min(TARGET_BYTES, retention.max_bytes // _SHARE_OF_RETENTION)
