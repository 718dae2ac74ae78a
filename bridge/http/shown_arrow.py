"""Records as an Arrow stream: the log's own columns, with a few words in place of its numbers.

What holds for the whole answer is in the schema's metadata: topic, next_offsets, has_more.
"""

from __future__ import annotations

import functools
import json
from typing import Any, Final

import numpy as np
import pyarrow as pa

from duolog.bridge.http.looking import Found
from duolog.log.batch import RECORD_SCHEMA
from duolog.log.fetched import FetchedBatch
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


def arrow_answer(found: Found) -> Any:
    """The whole stream as one buffer."""
    schema = SCHEMA.with_metadata(
        {
            "topic": found.topic.name,
            "next_offsets": json.dumps(
                {str(each): at for each, at in sorted(found.next_offsets.items())}
            ),
            "has_more": json.dumps(found.has_more),
        }
    )
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as stream:
        for page in found.pages:
            for batch in page.batches:
                stream.write_batch(_shown(page.partition, batch, schema))
    return sink.getvalue()


@functools.cache
def _words() -> tuple[Any, Any]:
    """Not made before they are needed: for the first array made of a list, pyarrow loads pandas
    where there is one, which takes 30 MB.
    """
    return (
        pa.array([op.word for op in Op]),
        pa.array([payload.word for payload in PayloadMode]),
    )


def _shown(partition: int, batch: FetchedBatch, schema: Any) -> Any:
    count = batch.records.num_rows
    ts, key, value, headers, op, table, payload = batch.records.columns
    ops, payloads = _words()
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.full(count, partition, np.int32)),
            pa.array(np.arange(batch.base_offset, batch.next_offset, dtype=np.int64)),
            ts.view(pa.timestamp("ms", "UTC")),
            key,
            value,
            pa.DictionaryArray.from_arrays(op, ops),
            table,
            pa.DictionaryArray.from_arrays(payload, payloads),
            headers,
        ],
        schema=schema,
    )
