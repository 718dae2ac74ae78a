"""The sink's options, as users of Spark write them: text, in any case.

The data source's writer takes them along to tasks, so what knows the registry's options is imported
where it is used.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from duolog.connector.table_rows import Unrouted
from duolog.errors import InvalidSetting

DEFAULT_SMALL_BATCH_ROWS = 10_000


@dataclass(frozen=True, slots=True)
class SinkOption:
    """One option, for messages and documents."""

    name: str
    meaning: str
    default: str = ""


SINK_OPTIONS = (
    SinkOption("path", "the log's folder, which is there already", "must be given"),
    SinkOption(
        "topic",
        "write rows with `key` and `value` columns to this topic (name or alias)",
        "each row's column `topic`",
    ),
    SinkOption("table", "the rows are those of this table, and its routes say which topics"),
    SinkOption("keyColumns", "the table's key columns, comma between", "no key"),
    SinkOption(
        "changes",
        "with `table`: what the rows are, `append`, `read`, `delta`, `iceberg` or `debezium`",
        "found from the columns",
    ),
    SinkOption(
        "rowColumns",
        "with `changes=debezium` and JSON in `value`: the row's columns, as in "
        "`id BIGINT, note STRING`",
    ),
    SinkOption(
        "unrouted", "with `table`: `fail` on changes that no route takes, or `drop` them", "fail"
    ),
    SinkOption("queryName", "the name of a stream, as Spark has it"),
    SinkOption("txnAppId", "who writes: in a batch job, and for a stream in place of `queryName`"),
    SinkOption("txnVersion", "the number of this batch write, higher each time"),
    SinkOption(
        "beginAnywhere",
        "`true`: a stream that this log does not know may begin with a later batch than 0",
        "false",
    ),
    SinkOption(
        "smallBatchRows",
        "`write_stream` and `write_batch`: after a batch of at most so many rows, the next one "
        "is encoded on the driver",
        str(DEFAULT_SMALL_BATCH_ROWS),
    ),
)
_BY_NAME = {option.name.lower(): option.name for option in SINK_OPTIONS}
_SPARKS_OWN = frozenset({"checkpointlocation"})
_ONLY_FOR_TABLES = ("keyColumns", "changes", "rowColumns", "unrouted")


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """What the options say. Picklable."""

    path: str
    topic: str | None = None
    table: str | None = None
    key_columns: tuple[str, ...] = ()
    changes: str | None = None
    row_columns: str | None = None
    unrouted: Unrouted = Unrouted.FAIL
    query_name: str | None = None
    app_id: str | None = None
    version: int | None = None
    begin_anywhere: bool = False
    small_batch_rows: int = DEFAULT_SMALL_BATCH_ROWS
    registry: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold passwords

    @classmethod
    def of(cls, given: Mapping[str, object]) -> SinkOptions:
        """The options, or InvalidSetting for a name or a value that is not right."""
        known, registry = _sorted_out(given)
        if "path" not in known:
            raise InvalidSetting("Say where the log is: option 'path' names its folder.")
        _check_together(known)
        return cls(
            path=known["path"],
            topic=known.get("topic"),
            table=known.get("table"),
            key_columns=_names(known.get("keyColumns", "")),
            changes=known.get("changes"),
            row_columns=known.get("rowColumns"),
            unrouted=_unrouted(known.get("unrouted", Unrouted.FAIL)),
            query_name=known.get("queryName"),
            app_id=known.get("txnAppId"),
            version=_whole("txnVersion", known["txnVersion"]) if "txnVersion" in known else None,
            begin_anywhere=_flag("beginAnywhere", known.get("beginAnywhere", "false")),
            small_batch_rows=_whole(
                "smallBatchRows", known.get("smallBatchRows", str(DEFAULT_SMALL_BATCH_ROWS))
            ),
            registry=registry,
        )

    def planned(self) -> SinkOptions:
        """Without what only planning needs: passwords of a registry stay on the driver."""
        return replace(self, registry={})


def _sorted_out(given: Mapping[str, object]) -> tuple[dict[str, str], dict[str, str]]:
    """Ours by their right names, and the registry's."""
    from duolog.avro.registry.options import RegistryOptions, is_registry_option

    known: dict[str, str] = {}
    registry: dict[str, str] = {}
    for name, value in given.items():
        ours = _BY_NAME.get(name.lower())
        if ours is not None:
            if ours in known:
                raise InvalidSetting(f"Option '{ours}' is given twice. Give it once.")
            known[ours] = _text(ours, value)
        elif is_registry_option(name):
            registry[name] = _text(name, value)
        elif name.lower() not in _SPARKS_OWN:
            raise InvalidSetting(f"There is no option '{name}'. {_hint(name)}")
    RegistryOptions.of(registry)
    return known, registry


def _hint(name: str) -> str:
    near = difflib.get_close_matches(name.lower().replace("_", ""), _BY_NAME, n=1)
    if near:
        return f"Did you mean '{_BY_NAME[near[0]]}'?"
    return f"There are {', '.join(option.name for option in SINK_OPTIONS)}, and a registry's."


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        value = ",".join(map(str, value))
    text = str(value).strip() if isinstance(value, str | int) else ""
    if not text:
        raise InvalidSetting(f"Option '{name}' is {value!r}. Give it a value, or leave it out.")
    return text


def _check_together(known: Mapping[str, str]) -> None:
    if "topic" in known and "table" in known:
        raise InvalidSetting(
            "Options 'topic' and 'table' exclude each other: give 'topic' for rows with key and "
            "value columns, 'table' for rows that the table's routes turn into records."
        )
    for name in _ONLY_FOR_TABLES:
        if name in known and "table" not in known:
            raise InvalidSetting(f"Option '{name}' is for rows of a table. Give 'table' too.")


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",")) if text else ()
    if not all(names):
        raise InvalidSetting(f"Option 'keyColumns' is '{text}'. Name columns, comma between.")
    return names


def _unrouted(word: str) -> Unrouted:
    try:
        return Unrouted(word.lower())
    except ValueError:
        raise InvalidSetting(f"Option 'unrouted' must be fail or drop; got '{word}'.") from None


def _whole(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise InvalidSetting(f"Option '{name}' must be a whole number from 0; got '{text}'.")
    return int(text)


def _flag(name: str, text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise InvalidSetting(f"Option '{name}' must be true or false; got '{text}'.")
    return text.lower() == "true"
