"""From text to filter, on the side where routes are made. Every mistake points at its word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duolog.errors import InvalidFilter
from duolog.log.model import Expression, Filter
from duolog.log.routing.filter.bind import bind_filter, bind_value
from duolog.log.routing.filter.grammar import parse, parse_list
from duolog.log.routing.filter.mistake import Mistake
from duolog.log.routing.filter.patterns import check_patterns
from duolog.log.routing.filter.reader import Reader
from duolog.log.routing.filter.text import to_sql
from duolog.log.routing.filter.tree import Column, Node, Operation, children, columns

if TYPE_CHECKING:
    import pyarrow as pa

    from duolog.log.routing.filter.tree import When


def parse_filter(text: str, schema: pa.Schema | None = None) -> Filter:
    """The filter that `text` says, checked against the table's columns if these are known.

    Without a schema, what can be known from the text alone is checked, and the rest with the
    first rows.
    """
    reader = Reader(text)
    tree = parse(reader)
    try:
        bind_filter(tree, schema, schema)
        check_patterns(tree)
    except Mistake as mistake:
        raise InvalidFilter(
            mistake.reason, text=text, position=reader.place_of(mistake.node)
        ) from None
    return Filter(text, tree)


def parse_partition_by(text: str) -> tuple[str | Expression, ...]:
    """The columns and expressions of a PARTITION BY: `a, lower(b)`, also in parentheses.

    A bare column is a str. An expression calculates with columns of the row as it is after the
    change, or, for a delete, as it was.
    """
    reader = Reader(text)
    return tuple(_partition_part(reader, node) for node in parse_list(reader))


def _partition_part(reader: Reader, node: Node) -> str | Expression:
    if isinstance(node, Column) and node.side == "row" and len(node.path) == 1:
        return node.path[0]
    outside = _first_outside_the_row(node)
    if outside is not None:
        raise InvalidFilter(
            "A partition is chosen by the row alone: leave out op, before and after. A column of "
            "such a name is written in double quotes.",
            text=reader.text,
            position=reader.place_of(outside),
        )
    if not columns(node):
        raise InvalidFilter(
            "This is the same for all rows: name a column.",
            text=reader.text,
            position=reader.place_of(node),
        )
    try:
        bind_value(node, None)
        check_patterns(node)
    except Mistake as mistake:
        raise InvalidFilter(
            mistake.reason, text=reader.text, position=reader.place_of(mistake.node)
        ) from None
    return Expression(to_sql(node), node)


def _first_outside_the_row(node: Node | When) -> Node | None:
    if isinstance(node, Operation) or (isinstance(node, Column) and node.side != "row"):
        return node
    found = (_first_outside_the_row(child) for child in children(node))
    return next((each for each in found if each is not None), None)
