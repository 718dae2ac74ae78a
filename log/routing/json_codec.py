"""Arrow columns as JSON objects: no spaces, columns in the order of the schema, nulls as null.

| type                  | in JSON                                                              |
|-----------------------|----------------------------------------------------------------------|
| bool, integers        | as they are; 64-bit integers as strings with `int64_as_string`       |
| float                 | the shortest number that reads back the same, `1.0` for one; what    |
|                       | JSON has no number for, as "NaN", "Infinity" and "-Infinity", as     |
|                       | Spark's to_json and PostgreSQL write them                            |
| decimal               | a string without exponent, with all digits of its scale              |
| string                | escaped only where JSON demands it                                   |
| binary                | base64 with padding                                                  |
| date, time, timestamp | ISO 8601 with 0, 3, 6 or 9 digits of a second's fraction, as needed; |
|                       | a timestamp with a zone in UTC, with a Z                             |
| list                  | an array                                                             |
| struct                | an object                                                            |
| map                   | an object when its keys are strings, else an array of objects with   |
|                       | `key` and `value`                                                    |
| dictionary            | as its values                                                        |

The text of a row depends on that row alone, never on the batch around it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from duolog.errors import InvalidRows
from duolog.log.routing.json_text import Text, listed, spread, text_of
from duolog.log.routing.json_values import scalar_writer, string_text
from duolog.log.routing.kinds import is_list_like, is_string
from duolog.log.routing.nested import as_list
from duolog.log.routing.optional import is_optional, unwrapped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duolog.log.routing.codec import Subject


@dataclass(frozen=True, slots=True)
class JsonCodec:
    """The format `json`."""

    int64_as_string: bool = False  # for readers whose numbers are doubles, as in JavaScript

    def prepare(self, schema: pa.Schema, subject: Subject) -> JsonEncoder:
        for field in schema:
            _check(field, field.name, subject)
        return JsonEncoder(schema, self.int64_as_string or subject.json_int64_as_string)


@dataclass(frozen=True, slots=True)
class JsonEncoder:
    """Writes rows of one schema."""

    schema: pa.Schema
    int64_as_string: bool = False

    def encode(self, rows: pa.StructArray) -> pa.BinaryArray:
        return self._object(rows, self.schema).joined().cast(pa.binary())

    def _object(self, rows: pa.StructArray, fields: Iterable[pa.Field]) -> Text:
        if rows.null_count:
            present = rows.is_valid()
            return text_of(spread(self._object(rows.filter(present), fields).joined(), present))
        pieces: list[pa.StringArray] = []  # members that some rows lack, and those between them
        run: list[Text | str] = []  # members that all rows have
        for index, field in enumerate(fields):
            values = rows.field(index)
            label = json.dumps(field.name, ensure_ascii=False) + ":"
            plain = unwrapped(field) if is_optional(field) else field
            if is_optional(field) and values.null_count:
                if run:
                    pieces.append(text_of(*run).joined())
                    run = []
                pieces.append(self._optional_member(values, plain, label))
            else:
                content = values.field(0) if is_optional(field) else values
                text = self._text(content, plain.type, field.name).or_null()
                run += ["," + label if run else label, text]
        if not pieces:
            return text_of("{", *run, "}") if run else text_of(pa.repeat("{}", len(rows)))
        if run:
            pieces.append(text_of(*run).joined())
        return text_of("{", listed(pieces), "}")

    def _optional_member(
        self, values: pa.StructArray, field: pa.Field, label: str
    ) -> pa.StringArray:
        """Label and text where the value is present, else null. Only what is present is written."""
        present = values.is_valid()
        text = self._text(values.field(0).filter(present), field.type, field.name)
        return spread(text_of(label, text.or_null()).joined(), present)

    def _text(self, values: pa.Array, kind: pa.DataType, name: str) -> Text:
        """The text of each value, null where it is null."""
        if pa.types.is_dictionary(kind):
            texts = self._text(values.dictionary, kind.value_type, name).joined()
            return text_of(texts.take(values.indices))
        if pa.types.is_struct(kind):
            return self._object(values, kind)
        if is_list_like(kind):
            return self._list(values, kind, name)
        writer = scalar_writer(kind, int64_as_string=self.int64_as_string)
        if writer is None:
            raise TypeError(f"{kind} was not refused when the encoder was prepared")
        return writer(values, name)

    def _list(self, values: pa.Array, kind: pa.DataType, name: str) -> Text:
        lists = as_list(values)
        if _is_object(kind):
            keys, items = lists.values.field(0), lists.values.field(1)
            item = self._text(items, kind.item_type, name).or_null()
            elements, begin, end = text_of(string_text(keys, name), ":", item), "{", "}"
        else:
            element = _element(kind)
            elements, begin, end = self._text(lists.values, element.type, name).or_null(), "[", "]"
        missing = lists.is_null() if lists.null_count else None
        texts = pa.ListArray.from_arrays(lists.offsets, elements.joined(), mask=missing)
        return text_of(begin, pc.binary_join(texts, ","), end)


def _is_object(kind: pa.DataType) -> bool:
    return bool(pa.types.is_map(kind)) and is_string(kind.key_type)


def _element(kind: pa.DataType) -> pa.Field:
    if pa.types.is_map(kind):
        return pa.field("entries", pa.struct([("key", kind.key_type), ("value", kind.item_type)]))
    return kind.value_field


def _check(field: pa.Field, name: str, subject: Subject) -> None:
    """Refuse a type that JSON has no form for, wherever it is nested."""
    kind = field.type
    if pa.types.is_dictionary(kind):
        _check(pa.field(field.name, kind.value_type), name, subject)
    elif pa.types.is_struct(kind):
        for child in kind:
            _check(child, name if is_optional(field) else f"{name}.{child.name}", subject)
    elif is_list_like(kind):
        _check(_element(kind), name, subject)
    elif scalar_writer(kind, int64_as_string=False) is None:
        raise InvalidRows(
            f"Column '{name}' is of type {kind}, which JSON has no form for, in the {subject}. "
            "Cast it to a number or a string first."
        )
