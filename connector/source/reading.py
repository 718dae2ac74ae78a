"""Reading one range of offsets. Runs in Spark tasks.

A log in a folder has one owner at a time. So a task opens it, takes batches as they are stored up
to some bytes, and closes it; it decodes them and hands them to Spark while others take their turn.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from duolog.connector.source.losses import WAY_OUT
from duolog.errors import (
    DamagedBatch,
    DuologError,
    OffsetOutOfRange,
    RecordsLost,
    UnknownPartition,
    UnknownTopic,
)

if TYPE_CHECKING:
    from duolog.connector.place import LogPlace
    from duolog.connector.source.ranges import Range
    from duolog.log.damage_model import LeftOut
    from duolog.log.fetched import FetchedBatch, FetchedEncoded

_LOG: Final = logging.getLogger("duolog.connector")

# As stored, and so in memory; batches are unpacked one by one. Opening a log costs 20 ms, which at
# 8 MiB was half of all the work in Python. Fetching ahead in a thread was no faster on busy cores.
CHUNK_BYTES: Final = 64 << 20


def read_range(
    log_place: LogPlace,
    wanted: Range,
    *,
    fail_on_data_loss: bool,
    skip_damaged: bool = False,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[FetchedBatch]:
    """The records of a range, in order. RecordsLost for what is not there any more, DamagedBatch
    for what cannot be decoded.
    """

    def pass_over(left_out: LeftOut) -> None:
        first, last = left_out.first_offset, left_out.next_offset - 1
        _LOG.warning(
            "Offsets %d to %d of %s are left out: %s", first, last, wanted.place, left_out.reason
        )
        if left_out.is_damaged:
            _look(log_place, wanted, first)

    at = wanted.start
    while at < wanted.end:
        try:
            chunk = _taken(log_place, wanted, at, chunk_bytes, skip_damaged)
        except OffsetOutOfRange as gone:
            at = _after_loss(wanted, at, gone, fail_on_data_loss)
            continue
        except (UnknownTopic, UnknownPartition) as gone:
            _report(f"The {wanted.place} is gone: {gone}", gone, fail_on_data_loss)
            return
        try:
            yield from chunk.decode(
                upto=wanted.end, skip_damaged=skip_damaged, passed_over=pass_over
            )
        except DamagedBatch as damage:
            _look(log_place, wanted, max(at, damage.first_offset))
            raise
        at = chunk.next_offset
        if not chunk.batches:  # the log ends before the range does
            at = _after_loss(wanted, at, None, fail_on_data_loss)


def _look(log_place: LogPlace, wanted: Range, at: int) -> None:
    """The log's owner looks for itself, and remembers it."""
    with suppress(DuologError), log_place.opened() as log:
        log.look_for_damage(wanted.place.topic_id, wanted.place.partition, at)


def _taken(
    log_place: LogPlace, wanted: Range, at: int, chunk_bytes: int, skip_damaged: bool
) -> FetchedEncoded:
    with log_place.opened() as log:
        return log.fetch_encoded(
            wanted.place.topic_id,
            wanted.place.partition,
            at,
            max_records=wanted.end - at,
            max_bytes=chunk_bytes,
            skip_damaged=skip_damaged,
        )


def _after_loss(
    wanted: Range, at: int, gone: OffsetOutOfRange | None, fail_on_data_loss: bool
) -> int:
    """Where to go on."""
    upto = wanted.end if gone is None or gone.earliest < at else min(gone.earliest, wanted.end)
    _report(f"Offsets {at} to {upto - 1} of {wanted.place} are gone", gone, fail_on_data_loss)
    return upto


def _report(what: str, cause: Exception | None, fail_on_data_loss: bool) -> None:
    if fail_on_data_loss:
        raise RecordsLost(f"{what}. {WAY_OUT}") from cause
    _LOG.warning("%s", what)
