"""Which feed a table's rows are, said or found from their columns, and whether they fit it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from duolog.connector.feeds.appended import AppendFeed
from duolog.connector.feeds.columns import check_key_types
from duolog.connector.feeds.debezium import VALUE, DebeziumFeed
from duolog.connector.feeds.versioned import CHANGE_TYPE, VersionedFeed
from duolog.errors import InvalidRows, InvalidSetting
from duolog.log.model import Op
from duolog.log.routing.changes import check_columns
from duolog.log.routing.kinds import is_binary, is_string

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duolog.connector.feeds.feed import Feed

TIME = "_commit_timestamp"  # Delta has it; a feed of Iceberg may be given it
_DELTA = (CHANGE_TYPE, "_commit_version", TIME)
_ICEBERG = (CHANGE_TYPE, "_change_ordinal", "_commit_snapshot_id")
_DEBEZIUM = ("before", "after", "op")
CHANGES = ("append", "read", "delta", "iceberg", "debezium")
"""What `changes` may say. `read`: a table as it stands, before its changes."""


def feed_for(
    schema: pa.Schema,
    *,
    table: str,
    key_columns: Sequence[str] = (),
    changes: str | None = None,
    ts_ms: int = 0,
    row_schema: pa.Schema | None = None,
) -> Feed:
    """The feed of rows with these columns.

    `ts_ms` is the time of changes that carry none (see `Feed.at`). `row_schema` has the columns of
    the rows inside Debezium's JSON.
    """
    keys = tuple(key_columns)
    said = None if changes is None else changes.strip().lower()
    if said is not None and said not in CHANGES:
        raise InvalidSetting(
            f"'changes' is '{changes}'; it can be {', '.join(CHANGES)}, or left out."
        )
    kind, why = (said, "as `changes` says") if said else _found(schema, table)
    found = f"{kind}, {why}"
    feed: Feed
    if kind in {"append", "read"}:
        op = Op.READ if kind == "read" else Op.INSERT
        feed = AppendFeed(table, keys, _plain(schema), found, op, ts_ms)
    elif kind == "debezium":
        rows, is_json = _debezium_rows(schema, table, row_schema)
        feed = DebeziumFeed(table, keys, rows, found, is_json, ts_ms)
    else:
        version, time = _version_and_time(schema, table, kind)
        rows = pa.schema([field for field in schema if field.name not in {*_OF[kind], TIME}])
        feed = VersionedFeed(table, keys, rows, found, version, time, ts_ms, kind == "delta")
    if not keys and kind not in {"append", "read"}:
        raise InvalidSetting(
            f"Table '{table}' comes as a change feed ({found}), whose events need a key. Set "
            f"keyColumns to the columns that tell its rows apart, out of: "
            f"{', '.join(feed.rows.names)}."
        )
    check_columns(table, feed.rows, keys)
    check_key_types(table, feed.rows, keys)
    return feed


def _found(schema: pa.Schema, table: str) -> tuple[str, str]:
    names = set(schema.names)
    candidates = {
        kind: [name for name in columns if name in names]
        for kind, columns in (("delta", _DELTA), ("iceberg", _ICEBERG))
        if names & set(columns[1:]) or CHANGE_TYPE in names
    }
    whole = [kind for kind in candidates if set(_OF[kind]) <= names]
    if len(whole) == 1:
        (kind,) = whole
        others = set().union(*map(set, candidates.values())) - {*_OF[kind], TIME}
        if not others:
            return kind, f"by its columns {', '.join(_OF[kind])}"
    if candidates:
        seen = sorted(set().union(*map(set, candidates.values())))
        raise InvalidSetting(
            f"The rows of table '{table}' have {', '.join(seen)}, which does not settle what feed "
            f"they are: Delta's has {', '.join(_DELTA)}, Iceberg's {', '.join(_ICEBERG)}. Select "
            "all columns of one of them, or set changes=append to take them as columns of plain "
            "rows."
        )
    if set(_DEBEZIUM) <= names and pa.types.is_struct(schema.field("after").type):
        return "debezium", f"by its columns {', '.join(_DEBEZIUM)}"
    return "append", "since no columns of a change feed are there"


_OF = {"delta": _DELTA, "iceberg": _ICEBERG}


def _version_and_time(schema: pa.Schema, table: str, kind: str) -> tuple[pa.Field, pa.Field | None]:
    """The columns by which a feed's changes are put in order and dated."""
    names = _OF[kind]
    missing = [name for name in names if name not in schema.names]
    if missing:
        raise InvalidRows(
            f"The rows of table '{table}' are to be a feed of {kind}, but lack "
            f"{', '.join(missing)}. Select them too, or set changes to what the rows are."
        )
    is_right = {
        CHANGE_TYPE: is_string,
        names[1]: pa.types.is_integer,
        names[2]: pa.types.is_int64,
        TIME: pa.types.is_timestamp,
    }
    for name, is_so in is_right.items():
        if name in schema.names and not is_so(schema.field(name).type):
            raise InvalidRows(
                f"'{name}' of table '{table}' is {schema.field(name).type}, not as a feed of "
                f"{kind} has it. Leave the feed's columns as they come."
            )
    return schema.field(names[1]), schema.field(TIME) if TIME in schema.names else None


def _plain(schema: pa.Schema) -> pa.Schema:
    return pa.schema(list(schema))


def _debezium_rows(
    schema: pa.Schema, table: str, row_schema: pa.Schema | None
) -> tuple[pa.Schema, bool]:
    """The columns of the rows, and whether they are in JSON."""
    names = schema.names
    if set(_DEBEZIUM) <= set(names):
        after, before = schema.field("after").type, schema.field("before").type
        if not pa.types.is_struct(after):
            raise InvalidRows(
                f"'after' of table '{table}' is {after}, not a struct of the row's columns. Parse "
                "it with from_json, or hand over the whole envelope as a column 'value'."
            )
        if before != after:
            raise InvalidRows(
                f"'before' and 'after' of table '{table}' have other columns: {before} and {after}."
                " Give both the same ones."
            )
        if not is_string(schema.field("op").type):
            raise InvalidRows(f"'op' of table '{table}' is {schema.field('op').type}, not text.")
        return pa.schema(list(after)), False
    if VALUE not in names:
        raise InvalidRows(
            f"The rows of table '{table}' are to be Debezium's, but have neither the columns "
            f"{', '.join(_DEBEZIUM)} nor a column '{VALUE}' with its JSON; they have "
            f"{', '.join(names)}."
        )
    kind = schema.field(VALUE).type
    if not is_string(kind) and not is_binary(kind):
        raise InvalidRows(f"'{VALUE}' of table '{table}' is {kind}, not JSON as text or bytes.")
    if row_schema is None:
        raise InvalidSetting(
            f"The rows of table '{table}' are Debezium's JSON, which does not tell the types of "
            "its columns. Set rowColumns to them, as in 'id BIGINT, note STRING', or parse them "
            "with from_json into before, after, op."
        )
    return _plain(row_schema), True
