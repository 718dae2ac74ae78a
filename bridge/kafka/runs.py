"""Log offsets and Kafka offsets of one mirrored partition. Pure.

A run is a stretch with one constant difference. Runs are kept in order and never touch with the
same difference: `extended` joins what belongs together.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from duolog.log.mirror_model import Run

__all__ = ["Run", "cut_at_kafka", "extended", "run_of_kafka", "run_of_log"]


def extended(runs: Sequence[Run], more: Run) -> tuple[Run, ...]:
    """The runs and one that follows them; it becomes a part of the last one where it fits."""
    if more.count <= 0:
        raise ValueError(f"A run needs at least one record: {more}.")
    if not runs:
        return (more,)
    last = runs[-1]
    if more.first_log_offset < last.next_log_offset:
        raise ValueError(f"{more} does not follow {last}.")
    if more.first_kafka_offset < last.next_kafka_offset:
        raise ValueError(f"{more} does not follow {last} in Kafka.")
    if (
        more.first_log_offset == last.next_log_offset
        and more.first_kafka_offset == last.next_kafka_offset
    ):
        return (*runs[:-1], last.cut(last.count + more.count))
    return (*runs, more)


def run_of_log(runs: Sequence[Run], log_offset: int) -> Run | None:
    """The run that holds this log offset."""
    at = bisect_right(runs, log_offset, key=lambda run: run.first_log_offset) - 1
    return runs[at] if at >= 0 and log_offset < runs[at].next_log_offset else None


def run_of_kafka(runs: Sequence[Run], kafka_offset: int) -> Run | None:
    """The run that holds this Kafka offset."""
    at = bisect_right(runs, kafka_offset, key=lambda run: run.first_kafka_offset) - 1
    return runs[at] if at >= 0 and kafka_offset < runs[at].next_kafka_offset else None


def cut_at_kafka(runs: Sequence[Run], end: int) -> tuple[Run, ...]:
    """What is left of the runs when Kafka holds nothing at `end` and beyond any more."""
    kept = [run for run in runs if run.first_kafka_offset < end]
    if kept and kept[-1].next_kafka_offset > end:
        kept[-1] = kept[-1].cut(end - kept[-1].first_kafka_offset)
    return tuple(kept)
