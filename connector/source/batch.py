"""A batch read: from here to there, as the log is when the read is planned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duolog.connector.source.choice import chosen_places
from duolog.connector.source.ranges import Range, split
from duolog.connector.source.resolving import ends, starts
from duolog.errors import InvalidSetting

if TYPE_CHECKING:
    from duolog.connector.source.options import SourceOptions
    from duolog.log.access import LogAccess


def batch_ranges(log: LogAccess, options: SourceOptions) -> list[Range]:
    """What the tasks of a batch read take."""
    places = chosen_places(log, options.choice)
    begin = starts(
        log,
        options.starting,
        places,
        error_without_match=options.error_without_match,
        fail_on_data_loss=options.fail_on_data_loss,
    )
    until = ends(log, options.ending, places, fail_on_data_loss=options.fail_on_data_loss)
    for place, offset in begin.items():
        if offset > until[place]:
            raise InvalidSetting(
                f"The read of {place} starts at {offset} and ends before that, at {until[place]}. "
                "Give an earlier start or a later end."
            )
    ranges = [Range(place, begin[place], until[place]) for place in places]
    return split(ranges, options.min_partitions, options.max_records)
