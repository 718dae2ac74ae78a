"""Bytes to values, as the topic's format says: Avro by the host's registry, JSON, or as they are.

Whole columns at once. Only when one of them cannot be decoded, each by itself, so that the others
are not held up by it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa
import pyarrow.json as pa_json

from duolog.client.options import ConsumerOptions
from duolog.client.records import Undecoded
from duolog.errors import InvalidSchema, Undecodable, UnknownSchema
from duolog.log.model import Format

if TYPE_CHECKING:
    from duolog.avro.reading import ValueReader
    from duolog.avro.registry.client import RegistryClient
    from duolog.client.pages import ArrowBatch

_OF_ONE_VALUE: Final = (Undecodable, UnknownSchema, InvalidSchema)


class Values:
    """Decodes for one consumer."""

    def __init__(self, options: ConsumerOptions) -> None:
        self._options = options
        self._client: RegistryClient | None = None
        self._reader: ValueReader | None = None
        self._shaped, self._shaped_json = _shapers(options.value_type)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def of(self, batch: ArrowBatch) -> list[Any]:
        """The values of a batch; Undecoded for those that are none."""
        payloads, headers = batch.columns.column("payload"), batch.columns.column("headers")
        if batch.format is Format.RAW and self._options.value_type is None:
            return list(payloads.to_pylist())
        if batch.format is Format.AVRO:
            return self._avro(batch, payloads, headers)
        decode, texts = self._shaped_json, payloads.to_pylist()
        try:
            return [None if text is None else decode(text) for text in texts]
        except (ValueError, RecursionError):
            return [
                None if text is None else self._one(batch, row, lambda: decode(text))  # noqa: B023
                for row, text in enumerate(texts)
            ]

    def column(self, table: pa.Table, format_: Format) -> pa.Table:
        """The same table with a column `value`, where the format has one."""
        payloads = table.column("payload")
        if format_ is Format.RAW:
            return table
        if format_ is Format.JSON:
            return table.append_column("value", _json_column(payloads))
        groups = self._avro_reader().decode(
            _one_chunk(payloads), cast("pa.ListArray", _one_chunk(table.column("headers")))
        )
        rows = [pa.table({"row": group.rows, "value": group.values}) for group in groups]
        if not rows:
            return table.append_column("value", pa.nulls(len(table)))
        # Records of several schemas: a column has the fields of all of them.
        several = [_unnested(each) for each in rows]
        whole = pa.concat_tables(several, promote_options="permissive")
        return table.append_column("value", _spread(whole, len(table)))

    def _avro(self, batch: ArrowBatch, payloads: Any, headers: Any) -> list[Any]:
        try:
            found = self._avro_values(payloads, headers)
        except _OF_ONE_VALUE:
            found = [self._one_avro(batch, row) for row in range(len(payloads))]
        if self._options.value_type is None:
            return found
        shaped = self._shaped
        return [
            value
            if value is None or isinstance(value, Undecoded)
            else self._one(batch, row, lambda: shaped(value))  # noqa: B023 - called at once
            for row, value in enumerate(found)
        ]

    def _avro_values(self, payloads: Any, headers: Any) -> list[Any]:
        values: list[Any] = [None] * len(payloads)
        for group in self._avro_reader().decode(payloads, headers):
            for row, value in zip(group.rows.tolist(), group.values.to_pylist(), strict=True):
                values[row] = value
        return values

    def _one_avro(self, batch: ArrowBatch, row: int) -> Any:
        columns = batch.columns.slice(row, 1)
        return self._one(
            batch,
            row,
            lambda: self._avro_values(columns.column("payload"), columns.column("headers"))[0],
        )

    def _one(self, batch: ArrowBatch, row: int, decode: Callable[[], Any]) -> Any:
        where = f"{batch.topic}:{batch.partition}:{batch.first_offset + row}"
        try:
            return decode()
        except _OF_ONE_VALUE as error:
            return Undecoded(type(error)(f"The value of {where}: {error}"))
        except (ValueError, RecursionError) as error:  # no JSON, or not of the type
            kind = self._options.value_type
            what = "JSON" if kind is None else f"a {getattr(kind, '__name__', kind)}"
            return Undecoded(Undecodable(f"The value of {where} is not {what}: {error}"))

    def _avro_reader(self) -> ValueReader:
        if self._reader is None:
            from duolog.avro.reading import ValueReader
            from duolog.avro.registry.client import RegistryClient
            from duolog.avro.registry.options import RegistryOptions

            given = self._options.registry or self._own_registry()
            connection = RegistryOptions.of(given).connection
            assert connection is not None  # noqa: S101 - there is an address
            self._client = RegistryClient(connection)
            self._reader = ValueReader(self._client)
        return self._reader

    def _own_registry(self) -> dict[str, str]:
        connection = self._options.connection
        given = {
            "schema.registry.url": f"{connection.address}/registry",
            "retries.deadline.ms": str(int(connection.deadline_seconds * 1000)),
        }
        if connection.token is not None:
            given["bearer.auth.token"] = connection.token.reveal()
        if connection.ca_path is not None:
            given["ssl.ca.location"] = connection.ca_path
        return given


def _shapers(kind: Any) -> tuple[Callable[[Any], Any], Callable[[bytes], Any]]:
    """From a decoded value, and from JSON."""
    if kind is None:
        return (lambda value: value), json.loads
    from pydantic import TypeAdapter

    adapter = TypeAdapter(kind)
    return adapter.validate_python, adapter.validate_json


def _json_column(payloads: pa.ChunkedArray) -> pa.Array:
    """Values of one shape or another as a column with the fields of all of them."""
    # Each within an object of its own, so that numbers, texts and null are values too.
    lines = b"\n".join(
        b'{"value":%b}' % (payload or b"null").replace(b"\n", b" ").replace(b"\r", b" ")
        for payload in payloads.to_pylist()
    )
    if not lines:
        return pa.nulls(0)
    options = pa_json.ReadOptions(use_threads=False, block_size=len(lines) + 1)
    try:
        found = pa_json.read_json(pa.py_buffer(lines), options)
    except pa.ArrowException as error:
        raise _mixed(str(error)) from None
    if found.num_rows != len(payloads) or found.column_names != ["value"]:
        raise _mixed("one of them is no JSON")
    return _one_chunk(found.column("value"))


def _mixed(reason: str) -> Undecodable:
    return Undecodable(
        f"These values are not JSON of one shape: {reason}. Read them as records, or decode the "
        "column payload."
    )


def _unnested(rows: pa.Table) -> pa.Table:
    """Concatenation promotes columns, but not the fields within them."""
    if not pa.types.is_struct(rows.schema.field("value").type):
        return rows
    return rows.flatten().rename_columns(
        ["row", *(field.name for field in rows.schema.field("value").type)]
    )


def _spread(rows: pa.Table, length: int) -> pa.ChunkedArray:
    """Values at their rows, and null elsewhere."""
    numbers = rows.column("row").to_pylist()
    columns = [each for each in rows.column_names if each != "row"]
    if columns == ["value"]:
        values = _one_chunk(rows.column("value"))
    else:
        values = pa.StructArray.from_arrays(
            [_one_chunk(rows.column(each)) for each in columns], names=columns
        )
    places: list[int | None] = [None] * length
    for at, number in enumerate(numbers):
        places[number] = at
    return pa.chunked_array([values.take(pa.array(places, pa.int64()))])


def _one_chunk(column: pa.ChunkedArray) -> pa.Array:
    found = column.combine_chunks()
    return found.chunk(0) if isinstance(found, pa.ChunkedArray) else found
