"""Which bytes choose a record's partition, when a route says so: columns and expressions of a row.

Murmur2 of these bytes, as of keys, gives the partition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from duolog.errors import InvalidRows
from duolog.log.model import Expression
from duolog.log.routing.filter.columns import find
from duolog.log.routing.filter.evaluate import calculate, value_type
from duolog.log.routing.filter.tree import columns

if TYPE_CHECKING:
    from collections.abc import Callable

    from duolog.log.model import Route, Topic
    from duolog.log.routing.codec import Encoder
    from duolog.log.routing.images import Images


@dataclass(frozen=True, slots=True)
class Placement:
    """A route's PARTITION BY, ready for rows of one schema."""

    parts: tuple[str | Expression, ...]
    text: str  # the parts as people write them
    fields: pa.Schema  # a field for each part
    needs_only_key: bool
    encoder: Encoder

    def places(self, images: Images, topic: Topic) -> pa.BinaryArray:
        """The bytes of each change."""
        unknown = images.only_key
        if not self.needs_only_key and unknown.any():
            raise InvalidRows(
                f"Topic '{topic.name}' partitions table '{images.table}' by "
                f"{self.text}, but of {int(np.count_nonzero(unknown))} deletes only "
                "the key is known. Feed the old rows too, or partition by key columns."
            )
        values = [
            calculate(part.tree, images.row)
            if isinstance(part, Expression)
            else images.row.column(part)
            for part in self.parts
        ]
        return self.encoder.encode(pa.StructArray.from_arrays(values, fields=list(self.fields)))


def placement_of(
    topic: Topic,
    route: Route,
    rows: pa.Schema,
    key_columns: tuple[str, ...],
    encoder_for: Callable[[pa.Schema], Encoder],
) -> Placement | None:
    """None when the key decides. Raises InvalidRows where the rows lack a column."""
    if not route.partition_by:
        return None
    fields: list[pa.Field] = []
    used: set[str] = set()
    for number, part in enumerate(route.partition_by, 1):
        if isinstance(part, Expression):
            fields.append(pa.field(_free_name(number, rows), value_type(part.tree, rows)))
            used.update(rows.names[find(column, rows)[0][0]] for column in columns(part.tree))
        elif part in rows.names:
            fields.append(rows.field(part))
            used.add(part)
        else:
            raise InvalidRows(
                f"Topic '{topic.name}' partitions table '{route.table}' by '{part}', which is not "
                f"among its columns ({', '.join(rows.names)}). Select it, or change the route."
            )
    schema = pa.schema(fields)
    return Placement(
        route.partition_by,
        ", ".join(route.partition_texts),
        schema,
        used <= set(key_columns),
        encoder_for(schema),
    )


def _free_name(number: int, rows: pa.Schema) -> str:
    """What an expression is called where its value is encoded; no column has this name."""
    name = f"expression_{number}"
    while name in rows.names:
        name += "_"
    return name
