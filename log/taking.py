"""What one read takes of a partition's batches: exact limits, wherever the batches come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from duolog.errors import DamagedBatch, InvalidRequest, OffsetOutOfRange
from duolog.log.damage_model import LeftOut
from duolog.log.fetched import FetchedBatch

BatchAt = Callable[[int], tuple[int, Any, int] | LeftOut]
"""The batch that holds an offset: its base offset, its records, and their bytes. Or a hole."""

Keep = Callable[[int, Any, bool], None]
"""Told of each batch that was used: its base offset, its records, and whether all were taken."""


_HEADER_BYTES = 32  # besides its name and value, in whichever form it is shown


class Taken(NamedTuple):
    """Records, where to read on, and what was passed over."""

    batches: tuple[FetchedBatch, ...]
    next_offset: int
    left_out: tuple[LeftOut, ...]


def take(
    batch_at: BatchAt,
    keep: Keep,
    offset: int,
    end: int,
    max_records: int,
    max_bytes: int,
    *,
    skip_damaged: bool = False,
) -> Taken:
    """Records from an offset up to `end`; at least one if there is one, however large it is.

    Holes are passed over. A damaged batch ends a read before it, and is the next one's error,
    unless it is to be skipped.
    """
    taken: list[FetchedBatch] = []
    left_out: list[LeftOut] = []
    at = offset
    while at < end and max_records > 0 and max_bytes > 0:
        try:
            found = batch_at(at)
        except DamagedBatch as damage:
            if skip_damaged:
                found = LeftOut(at, damage.next_offset, True, damage.reason)
            elif taken:
                break
            else:
                raise
        if isinstance(found, LeftOut):
            left_out.append(found)
            at = found.next_offset
            continue
        base, whole, size = found
        records = whole
        most = min(max_records, end - at)
        if at > base or whole.num_rows > most or size > max_bytes:
            records, size = records_within(
                whole.slice(at - base, most), max_bytes, at_least_one=not taken
            )
        keep(base, whole, records is whole)
        if not records.num_rows:
            break
        taken.append(FetchedBatch(at, records))
        at += records.num_rows
        max_records -= records.num_rows
        max_bytes -= size
    return Taken(tuple(taken), min(at, end), tuple(left_out))


def check_limits(max_records: int, max_bytes: int) -> None:
    """Refuse limits that are no whole numbers from 1."""
    for name, limit in (("max_records", max_records), ("max_bytes", max_bytes)):
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise InvalidRequest(f"{name} must be a whole number from 1; got {limit!r}.")


def checked_places(places: Any) -> list[tuple[str | int, int, int]]:
    """Refuse what are no places: they may come from another process."""
    checked = []
    if not isinstance(places, Sequence) or isinstance(places, str):
        raise InvalidRequest(f"Places come as a list; got {places!a:.80}.")
    for place in places:
        match place:
            case (str() | int() as reference, int(partition), int(offset)):
                checked.append((reference, partition, offset))
            case _:
                raise InvalidRequest(
                    f"A place is a topic, a partition and an offset; got {place!a:.80}."
                )
    return checked


def check_in_range(topic: str, partition: int, offset: int, start: int, next_offset: int) -> None:
    """Refuse an offset that cannot be read from."""
    if isinstance(offset, bool) or not isinstance(offset, int):
        raise InvalidRequest(f"An offset must be a whole number; got {offset!r}.")
    if not start <= offset <= next_offset:
        raise OffsetOutOfRange(
            topic=topic, partition=partition, offset=offset, earliest=start, latest=next_offset
        )


def records_within(records: Any, max_bytes: int, *, at_least_one: bool) -> tuple[Any, int]:
    """The first records that are within the limit, with all that they hold, and their bytes."""
    if records.nbytes <= max_bytes:
        return records, int(records.nbytes)
    ends = _ends(records.column("key")) + _ends(records.column("value"))
    for more in (_ends_of_tables, _ends_of_headers):
        ends = ends + more(records)
    total = ends[1:] - ends[0]
    fitting = int(np.searchsorted(total, max_bytes, side="right"))
    if at_least_one:
        fitting = max(1, fitting)
    fitting = min(fitting, records.num_rows)
    return records.slice(0, fitting), int(total[fitting - 1]) if fitting else 0


def _ends_of_tables(records: Any) -> Any:
    tables = records.column("table")
    return 0 if tables.null_count == len(tables) else _ends(tables)


def _ends_of_headers(records: Any) -> Any:
    headers = records.column("headers")
    if headers.null_count == len(headers):
        return 0
    firsts = np.frombuffer(headers.buffers()[1], np.int32, len(headers) + 1, 4 * headers.offset)
    names, values = headers.values.flatten()
    return (_ends(names) + _ends(values))[firsts] + firsts * _HEADER_BYTES


def _ends(column: Any) -> Any:
    """Where each value of a binary column begins, and where the last one ends."""
    return np.frombuffer(column.buffers()[1], np.int32, len(column) + 1, 4 * column.offset).astype(
        np.int64
    )
