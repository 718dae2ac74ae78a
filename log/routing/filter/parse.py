"""From text to filter, on the side where routes are made. Every mistake points at its word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duolog.errors import InvalidFilter
from duolog.log.model import Filter
from duolog.log.routing.filter.bind import bind_filter
from duolog.log.routing.filter.grammar import parse
from duolog.log.routing.filter.mistake import Mistake
from duolog.log.routing.filter.reader import Reader

if TYPE_CHECKING:
    import pyarrow as pa


def parse_filter(text: str, schema: pa.Schema | None = None) -> Filter:
    """The filter that `text` says, checked against the table's columns if these are known.

    Without a schema, what can be known from the text alone is checked, and the rest with the
    first rows.
    """
    reader = Reader(text)
    tree = parse(reader)
    try:
        bind_filter(tree, schema, schema)
    except Mistake as mistake:
        raise InvalidFilter(
            mistake.reason, text=text, position=reader.place_of(mistake.node)
        ) from None
    return Filter(text, tree)
