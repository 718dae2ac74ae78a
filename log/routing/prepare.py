"""A table's routes made ready to run: schemas settled, encoders prepared, everything checked.

This is the part that may need a registry and that finds mistakes in a route's columns. It is done
where the schema is known, and what comes of it travels to the tasks.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from duolog.errors import InvalidRows
from duolog.log.model import Format, PayloadMode
from duolog.log.routing.changes import check_columns
from duolog.log.routing.codec import Part, Subject, codec_for
from duolog.log.routing.envelope import value_schema
from duolog.log.routing.json_codec import JsonCodec
from duolog.log.routing.payload import key_fields
from duolog.log.routing.placement import placement_of
from duolog.log.routing.raw_codec import RawCodec

if TYPE_CHECKING:
    from duolog.log.model import Route, Topic
    from duolog.log.routing.codec import Codecs, Encoder
    from duolog.log.routing.placement import Placement
    from duolog.log.routing.plan import RoutingPlan

BUILT_IN: Codecs = MappingProxyType({Format.JSON: JsonCodec(), Format.RAW: RawCodec()})
"""The codecs that need nothing but pyarrow and numpy."""


@dataclass(frozen=True, slots=True)
class PreparedRoute:
    """One route with all that it takes to make its records."""

    topic: Topic
    route: Route
    schema: pa.Schema  # of the values, envelope included
    value: Encoder
    key: Encoder | None  # none: the table has no key
    placement: Placement | None  # by the route's own columns; none: the key decides
    columns: tuple[str, ...] | None  # that a value shows; none: all


@dataclass(frozen=True, slots=True)
class PreparedTable:
    """The routes of one table for rows of one schema. Picklable."""

    table: str
    rows: pa.Schema
    key_columns: tuple[str, ...]
    routes: tuple[PreparedRoute, ...]  # those of one topic side by side


def prepare(
    plan: RoutingPlan,
    table: str,
    rows: pa.Schema,
    key_columns: tuple[str, ...],
    codecs: Codecs = BUILT_IN,
) -> PreparedTable:
    """The routes of `table`, for rows with these columns."""
    check_columns(table, rows, key_columns)
    routes = [
        _prepared(topic, route, rows, key_columns, codecs) for topic, route in plan.routes_of(table)
    ]
    return PreparedTable(table, rows, key_columns, tuple(routes))


def _prepared(
    topic: Topic, route: Route, rows: pa.Schema, key_columns: tuple[str, ...], codecs: Codecs
) -> PreparedRoute:
    _check(topic, route, rows, key_columns)

    def encoder(wanted: Format, part: Part, schema: pa.Schema) -> Encoder:
        subject = Subject(
            topic.name,
            route.table,
            part,
            route.payload,
            settings.envelope,
            settings.json_int64_as_string,
        )
        return codec_for(codecs, wanted, subject).prepare(schema, subject)

    settings = topic.settings
    columns = _columns_shown(route, rows, key_columns)
    visible = rows if columns is None else pa.schema([rows.field(name) for name in columns])
    values = value_schema(visible, key_columns, route, settings.envelope)
    keys = pa.schema(key_fields(rows, key_columns))
    return PreparedRoute(
        topic=topic,
        route=route,
        schema=values,
        value=encoder(settings.value_format, Part.VALUE, values),
        key=encoder(settings.key_format, Part.KEY, keys) if key_columns else None,
        placement=placement_of(
            topic,
            route,
            rows,
            key_columns,
            lambda schema: encoder(settings.key_format, Part.PLACE, schema),
        ),
        columns=columns,
    )


def _check(topic: Topic, route: Route, rows: pa.Schema, key_columns: tuple[str, ...]) -> None:
    if not key_columns and route.payload in (PayloadMode.KEY, PayloadMode.DIFF):
        raise InvalidRows(
            f"Topic '{topic.name}' takes the payload {route.payload.word} of table "
            f"'{route.table}', whose rows have no key. Name key columns, or use payload full."
        )
    for name in route.columns or ():
        if name not in rows.names:
            raise InvalidRows(
                f"Topic '{topic.name}' takes column '{name}' of table '{route.table}', which is "
                f"not among its columns ({', '.join(rows.names)}). Select it, or change the route."
            )


def _columns_shown(
    route: Route, rows: pa.Schema, key_columns: tuple[str, ...]
) -> tuple[str, ...] | None:
    """The columns that values show, in the table's order; the key's are always among them."""
    if route.columns is None:
        return None
    return tuple(name for name in rows.names if name in route.columns or name in key_columns)
