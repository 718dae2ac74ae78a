"""The sink's options, as users of Spark write them: text, in any case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from duolog.connector.bad_rows import BadRecords
from duolog.connector.option_names import PLACE_OPTIONS, Option, OptionNames
from duolog.connector.option_text import flag, whole
from duolog.connector.place import LogPlace
from duolog.errors import InvalidSetting
from duolog.log.model import Unrouted

W = TypeVar("W", bound=StrEnum)
DEFAULT_SMALL_BATCH_ROWS = 10_000


SINK_OPTIONS = (
    *PLACE_OPTIONS,
    Option(
        "topic",
        "write rows with `key` and `value` columns to this topic (name or alias)",
        "each row's column `topic`",
    ),
    Option("table", "the rows are those of this table, and its routes say which topics"),
    Option("keyColumns", "the table's key columns, comma between", "no key"),
    Option(
        "changes",
        "with `table`: what the rows are, `append`, `read`, `delta`, `iceberg` or `debezium`",
        "found from the columns",
    ),
    Option(
        "rowColumns",
        "with `changes=debezium` and JSON in `value`: the row's columns, as in "
        "`id BIGINT, note STRING`",
    ),
    Option(
        "unrouted", "with `table`: `fail` on changes that no route takes, or `drop` them", "fail"
    ),
    Option(
        "sequenceBy",
        "`write_stream` and `write_batch`: the columns that say in which order the rows of a key "
        "come, comma between",
        "no order between tasks",
    ),
    Option(
        "badRecords",
        "`fail` on rows that cannot be written, or put them into the topic `dlqTopic`",
        "fail",
    ),
    Option(
        "dlqTopic",
        "with `badRecords=dlq`: the topic for such rows; made where it is missing",
        "the target's name and `-dlq`",
    ),
    Option("queryName", "the name of a stream, as Spark has it"),
    Option("txnAppId", "who writes: in a batch job, and for a stream in place of `queryName`"),
    Option("txnVersion", "the number of this batch write, higher each time"),
    Option(
        "beginAnywhere",
        "`true`: a stream that this log does not know may begin with a later batch than 0",
        "false",
    ),
    Option(
        "smallBatchRows",
        "`write_stream` and `write_batch`: after a batch of at most so many rows, the next one "
        "is encoded on the driver",
        str(DEFAULT_SMALL_BATCH_ROWS),
    ),
)
_NAMES = OptionNames(SINK_OPTIONS, passed_over=frozenset({"checkpointlocation"}))  # Spark's own
_ONLY_FOR_TABLES = ("keyColumns", "changes", "rowColumns", "unrouted")


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """What the options say. Picklable."""

    place: LogPlace
    topic: str | None = None
    table: str | None = None
    key_columns: tuple[str, ...] = ()
    changes: str | None = None
    row_columns: str | None = None
    unrouted: Unrouted = Unrouted.FAIL
    sequence_by: tuple[str, ...] = ()
    bad_records: BadRecords = BadRecords.FAIL
    dlq_topic: str | None = None
    query_name: str | None = None
    app_id: str | None = None
    version: int | None = None
    begin_anywhere: bool = False
    small_batch_rows: int = DEFAULT_SMALL_BATCH_ROWS
    registry: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold passwords

    @classmethod
    def of(cls, given: Mapping[str, object]) -> SinkOptions:
        """The options, or InvalidSetting for a name or a value that is not right."""
        known, registry = _NAMES.sorted_out(given)
        place = LogPlace.of(known)
        _check_together(known)
        return cls(
            place=place,
            topic=known.get("topic"),
            table=known.get("table"),
            key_columns=_names("keyColumns", known.get("keyColumns", "")),
            changes=known.get("changes"),
            row_columns=known.get("rowColumns"),
            unrouted=_word("unrouted", known.get("unrouted", "fail"), Unrouted),
            sequence_by=_names("sequenceBy", known.get("sequenceBy", "")),
            bad_records=_word("badRecords", known.get("badRecords", "fail"), BadRecords),
            dlq_topic=known.get("dlqTopic"),
            query_name=known.get("queryName"),
            app_id=known.get("txnAppId"),
            version=whole("txnVersion", known["txnVersion"], 0) if "txnVersion" in known else None,
            begin_anywhere=flag("beginAnywhere", known.get("beginAnywhere", "false")),
            small_batch_rows=whole(
                "smallBatchRows", known.get("smallBatchRows", str(DEFAULT_SMALL_BATCH_ROWS)), 0
            ),
            registry=registry,
        )

    def planned(self) -> SinkOptions:
        """Without what only planning needs: passwords of a registry stay on the driver."""
        return replace(self, registry={})


def _check_together(known: Mapping[str, str]) -> None:
    if "topic" in known and "table" in known:
        raise InvalidSetting(
            "Options 'topic' and 'table' exclude each other: give 'topic' for rows with key and "
            "value columns, 'table' for rows that the table's routes turn into records."
        )
    for name in _ONLY_FOR_TABLES:
        if name in known and "table" not in known:
            raise InvalidSetting(f"Option '{name}' is for rows of a table. Give 'table' too.")
    if "dlqTopic" in known and known.get("badRecords", "").lower() != BadRecords.DLQ:
        raise InvalidSetting("Option 'dlqTopic' names the topic for badRecords=dlq. Give that too.")


def _names(name: str, text: str) -> tuple[str, ...]:
    names = tuple(column.strip() for column in text.split(",")) if text else ()
    if not all(names):
        raise InvalidSetting(f"Option '{name}' is '{text}'. Name columns, comma between.")
    return names


def _word(name: str, word: str, words: type[W]) -> W:
    try:
        return words(word.lower())
    except ValueError:
        raise InvalidSetting(
            f"Option '{name}' must be {' or '.join(words)}; got '{word}'."
        ) from None
