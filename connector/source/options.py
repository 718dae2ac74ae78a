"""The source's options: those of Spark's Kafka source in its own words, and a few of ours."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from duolog.connector.option_names import PLACE_OPTIONS, Option, OptionNames
from duolog.connector.option_text import flag, seconds, whole
from duolog.connector.place import LogPlace
from duolog.connector.source.choice import Choice, choice_of
from duolog.connector.source.points import Points, ending_points, starting_points
from duolog.errors import InvalidSetting

_LOG: Final = logging.getLogger("duolog.connector")


SOURCE_OPTIONS: Final = (
    *PLACE_OPTIONS,
    Option("subscribe", "topics by name or alias, comma between", "one of these three"),
    Option(
        "subscribePattern", "a regular expression for the whole name, also of topics made later"
    ),
    Option("assign", 'certain partitions, as in `{"orders": [0, 1]}`'),
    Option(
        "startingOffsets",
        "`earliest`, `latest` (streams only), or an offset for each partition, as in "
        '`{"orders": {"0": 23, "1": -2}}`: -2 is earliest, -1 latest',
        "latest for streams, earliest for batch",
    ),
    Option(
        "startingOffsetsByTimestamp",
        "milliseconds since 1970 for each partition; goes before `startingOffsets`",
    ),
    Option("startingTimestamp", "milliseconds since 1970; goes before both of the others"),
    Option(
        "startingOffsetsByTimestampStrategy",
        "where no record is as late as the timestamp: `error`, or start at the `latest` offset",
        "error",
    ),
    Option(
        "endingOffsets",
        "batch: `latest`, or an offset for each partition that is not read any more",
        "latest",
    ),
    Option("endingOffsetsByTimestamp", "batch: the same by timestamps; no such record: latest"),
    Option("endingTimestamp", "batch: the same by one timestamp"),
    Option("maxOffsetsPerTrigger", "streams: at most so many records in a micro-batch"),
    Option("minOffsetsPerTrigger", "streams: wait until there are so many"),
    Option("maxTriggerDelay", "streams: but not longer than this", "15m"),
    Option(
        "availableNow",
        "streams: `true` reads what is there at the start and no more, for `run_available`",
        "false",
    ),
    Option("minPartitions", "cut large partitions so that there are about so many tasks"),
    Option("maxRecordsPerPartition", "cut partitions so that no task gets more records"),
    Option(
        "failOnDataLoss",
        "`false`: go on with a warning where records, partitions or topics are gone",
        "true",
    ),
    Option(
        "skipDamaged",
        "`true`: go on with a warning behind stored batches that cannot be decoded",
        "false",
    ),
    Option("includeHeaders", "`true` adds the column `headers`", "false"),
    Option(
        "includeChange",
        "`true` adds the columns `op` and `table`: what was done to a row of which table",
        "false",
    ),
    Option(
        "decode", "`true` gives `value` as a struct of its Avro fields in place of bytes", "false"
    ),
    Option("group", "streams: a group that acknowledges each micro-batch once it is done"),
)
_NAMES: Final = OptionNames(SOURCE_OPTIONS, doing=" for reading", no_brokers=True)
_ENDS: Final = ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp")
_LIMITS: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
_ONLY_STREAMS: Final = ("availableNow", "group")


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What the options say. Picklable."""

    place: LogPlace
    choice: Choice
    starting: Points
    ending: Points
    error_without_match: bool = True
    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay_seconds: float = 900.0
    available_now: bool = False
    min_partitions: int | None = None
    max_records: int | None = None
    fail_on_data_loss: bool = True
    skip_damaged: bool = False
    include_headers: bool = False
    include_change: bool = False
    decode: bool = False
    group: str | None = None
    registry: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold passwords

    @classmethod
    def of(cls, given: Mapping[str, object], *, streaming: bool | None = None) -> SourceOptions:
        """The options, or InvalidSetting for a name or a value that is not right.

        Without `streaming` nobody knows yet whether it is a stream, so what either may have passes.
        """
        known, registry = _NAMES.sorted_out(given)
        if streaming is not None:
            _check_kind(known, streaming)
        strategy = known.get("startingOffsetsByTimestampStrategy", "error").lower()
        if strategy not in {"error", "latest"}:
            raise InvalidSetting(
                "Option 'startingOffsetsByTimestampStrategy' must be error or latest; got "
                f"'{strategy}'."
            )
        options = cls(
            place=LogPlace.of(known),
            choice=choice_of(known),
            starting=starting_points(known, streaming=streaming is not False),
            ending=ending_points(known),
            error_without_match=strategy == "error",
            max_offsets=_number(known, "maxOffsetsPerTrigger"),
            min_offsets=_number(known, "minOffsetsPerTrigger"),
            max_delay_seconds=seconds("maxTriggerDelay", known.get("maxTriggerDelay", "15m")),
            available_now=_flag(known, "availableNow"),
            min_partitions=_number(known, "minPartitions"),
            max_records=_number(known, "maxRecordsPerPartition"),
            fail_on_data_loss=_flag(known, "failOnDataLoss", "true"),
            skip_damaged=_flag(known, "skipDamaged"),
            include_headers=_flag(known, "includeHeaders"),
            include_change=_flag(known, "includeChange"),
            decode=_flag(known, "decode"),
            group=known.get("group"),
            registry=registry,
        )
        least, most = options.min_offsets, options.max_offsets
        if least is not None and most is not None and least > most:
            raise InvalidSetting(
                f"Option 'minOffsetsPerTrigger' ({least}) is more than 'maxOffsetsPerTrigger' "
                f"({most}). Make it at most the same."
            )
        return options


def _check_kind(known: Mapping[str, str], streaming: bool) -> None:
    """What is for streams or batch reads only. Limits are passed over, as Kafka's source does."""
    if streaming:
        for name in _ENDS:
            if name in known:
                raise InvalidSetting(
                    f"Option '{name}' is for batch reads; a stream has no end. Leave it out, or "
                    "read what is there now with option 'availableNow' and run_available."
                )
        return
    for name in _ONLY_STREAMS:
        if name in known:
            raise InvalidSetting(f"Option '{name}' is for streams. Leave it out of a batch read.")
    for name in _LIMITS:
        if name in known:
            _LOG.warning("option %s is for streams; a batch read passes over it", name)


def _number(known: Mapping[str, str], name: str) -> int | None:
    return whole(name, known[name], least=1, most_digits=18) if name in known else None


def _flag(known: Mapping[str, str], name: str, default: str = "false") -> bool:
    return flag(name, known.get(name, default))
