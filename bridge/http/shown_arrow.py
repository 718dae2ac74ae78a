"""Records as an Arrow stream: the log's own columns, with a few words in place of its numbers.

What holds for the whole answer is in the schema's metadata: topic, topic_id, key_format,
value_format, next_offsets, has_more, and for a member member_id, generation, assigned. Whole
batches go out as they are stored.
"""

from __future__ import annotations

import functools
import json
from typing import Any, Final

import numpy as np
import pyarrow as pa

from duolog.bridge.http.arrow_messages import Splice
from duolog.bridge.http.looking import Found
from duolog.bridge.http.shown_json import member_fields, without_records
from duolog.bridge.http.stored_pages import StoredBatch, StoredPage
from duolog.log.batch import RECORD_SCHEMA
from duolog.log.fetched import Fetched, FetchedBatch
from duolog.log.model import Op, PayloadMode

MEDIA_TYPE: Final = "application/vnd.apache.arrow.stream"

_WORD: Final = pa.dictionary(pa.int8(), pa.string())
SCHEMA: Final = pa.schema(
    [
        pa.field("partition_id", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("ts", pa.timestamp("ms", "UTC"), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("payload", pa.binary()),
        pa.field("op", _WORD),
        pa.field("source_table", pa.string()),
        pa.field("payload_mode", _WORD),
        pa.field("headers", RECORD_SCHEMA.field("headers").type),
    ]
)

_STORED_AS: Final = {"payload": "value", "source_table": "table", "payload_mode": "payload"}
_END: Final = b"\xff\xff\xff\xff\0\0\0\0"


def arrow_answer(
    found: Found[StoredPage] | Found[Fetched], unsettled: str | None = None
) -> list[Any]:
    """The whole stream, as buffers that follow one another."""
    schema = SCHEMA.with_metadata(
        {
            "topic": found.topic.name,
            "topic_id": str(found.topic.id),
            "key_format": found.topic.settings.key_format.value,
            "value_format": found.topic.settings.value_format.value,
            "next_offsets": json.dumps(
                {str(each): at for each, at in sorted(found.next_offsets.items())}
            ),
            "has_more": json.dumps(found.has_more),
            **({} if unsettled is None else {"unsettled": unsettled}),
            **{name: json.dumps(said) for name, said in without_records(found).items()},
            **{
                name: said if isinstance(said, str) else json.dumps(said)
                for name, said in member_fields(found.place).items()
            },
        }
    )
    pieces = [schema.serialize(), *_dictionaries()]
    for page in found.pages:
        for batch in page.batches:
            if isinstance(batch, StoredBatch):
                pieces += _spliced(page.partition, batch)
            else:
                pieces.append(_shown(page.partition, batch).serialize())
    return [*pieces, _END]


def _spliced(partition: int, batch: StoredBatch) -> list[Any]:
    places = _places(partition, batch.base_offset, batch.message.count)
    return _splice().pieces(batch.message, places)


def _places(partition: int, base_offset: int, count: int) -> tuple[Any, Any]:
    offsets = np.arange(base_offset, base_offset + count, dtype=np.int64)
    return np.full(count, partition, np.int32), offsets


@functools.cache
def _splice() -> Splice:
    order = [RECORD_SCHEMA.get_field_index(_STORED_AS.get(name, name)) for name in SCHEMA.names[2:]]
    return Splice(SCHEMA, order, _sample())


@functools.cache
def _dictionaries() -> list[Any]:
    """The messages that say which words the numbers of `op` and `payload_mode` stand for."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as stream:
        stream.write_batch(_sample())
    messages = pa.ipc.MessageReader.open_stream(sink.getvalue())
    return [message.serialize() for message in messages if message.type == "dictionary"]


def _sample() -> Any:
    columns = [pa.nulls(1, field.type) if field.nullable else pa.array(np.zeros(1, np.int64))
               .cast(field.type) for field in RECORD_SCHEMA]  # fmt: skip
    return _shown(0, FetchedBatch(0, pa.RecordBatch.from_arrays(columns, schema=RECORD_SCHEMA)))


@functools.cache
def _words() -> tuple[Any, Any]:
    """Not made before they are needed: for the first array made of a list, pyarrow loads pandas
    where there is one, which takes 30 MB.
    """
    return (
        pa.array([op.word for op in Op]),
        pa.array([payload.word for payload in PayloadMode]),
    )


def _shown(partition: int, batch: FetchedBatch) -> Any:
    ts, key, value, headers, op, table, payload = batch.records.columns
    ops, payloads = _words()
    return pa.RecordBatch.from_arrays(
        [
            *map(pa.array, _places(partition, batch.base_offset, batch.records.num_rows)),
            ts.view(pa.timestamp("ms", "UTC")),
            key,
            value,
            pa.DictionaryArray.from_arrays(op, ops),
            table,
            pa.DictionaryArray.from_arrays(payload, payloads),
            headers,
        ],
        schema=SCHEMA,
    )
