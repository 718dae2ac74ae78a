"""Pages of a topic in Avro, with its keys and values as JSON."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from duolog.errors import DuologError
from duolog.log.batch import RECORD_SCHEMA
from duolog.log.model import Format
from duolog.log.routing.codec import Part

if TYPE_CHECKING:
    from duolog.avro.reading import ValueReader
    from duolog.log.access import LogAccess
    from duolog.log.fetched import Fetched, FetchedBatch
    from duolog.log.model import Topic


class AvroPages:
    """Decodes what can be decoded; the rest stays as it is, and is shown as bytes."""

    def __init__(self, topic: Topic, reader: ValueReader) -> None:
        settings = topic.settings
        self._reader = reader
        self._columns = {
            name: part
            for name, part, kind in (
                ("key", Part.KEY, settings.key_format),
                ("value", Part.VALUE, settings.value_format),
            )
            if kind is Format.AVRO
        }

    def as_json(self, page: Fetched) -> Fetched:
        return replace(page, batches=tuple(self._batch(batch) for batch in page.batches))

    def _batch(self, batch: FetchedBatch) -> FetchedBatch:
        records = batch.records
        columns = [
            self._json(records, name) if name in self._columns else records.column(name)
            for name in RECORD_SCHEMA.names
        ]
        return replace(batch, records=pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA))

    def _json(self, records: pa.RecordBatch, name: str) -> pa.BinaryArray:
        part = self._columns[name]
        values, headers = records.column(name), records.column("headers")
        try:
            return self._reader.as_json(values, headers, part)
        except DuologError:
            if len(values) == 1:
                return values
        # One of them is not Avro, or its schema is gone: show the others all the same.
        return pa.concat_arrays(
            [self._json(records.slice(row, 1), name) for row in range(len(values))]
        )


def reader_for(log: LogAccess) -> ValueReader:
    """What decodes the topics of a log in Avro, with the registry that the settings name."""
    from duolog.avro.reading import ValueReader
    from duolog.reach import registry_for
    from duolog.settings import load_settings

    return ValueReader(registry_for(log, load_settings({}).avro_options()))


def is_avro(topic: Topic) -> bool:
    """Whether keys or values of this topic are in Avro."""
    return Format.AVRO in (topic.settings.key_format, topic.settings.value_format)
