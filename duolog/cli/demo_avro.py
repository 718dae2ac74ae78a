"""The demo's part in Avro: smaller values, and columns that change only as readers can bear."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa

from duolog.avro.embedded import registry_of
from duolog.avro.reading import ValueReader
from duolog.cli.story import Story
from duolog.errors import IncompatibleSchema
from duolog.log.model import Format, Op, Route, TopicSettings

if TYPE_CHECKING:
    from duolog.log import EmbeddedLog

TOPIC = "parcels"
_TABLE = "shop.parcels"
_SUBJECT = f"{TOPIC}-value"
_COLUMNS = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("sent", pa.timestamp("ms", "UTC")),
        pa.field("city", pa.string()),
        pa.field("grams", pa.int32()),
    ]
)
_ROWS = [
    {"id": number, "sent": 1_700_000_000_000 + number, "city": city, "grams": 100 * number}
    for number, city in enumerate(("Oslo", "Porto", "Kyoto", "Quito"), 1)
]


def change_columns(story: Story, log: EmbeddedLog) -> None:
    story.step("A topic in Avro, and columns that change")
    log.create_topic(TOPIC, TopicSettings(value_format=Format.AVRO))
    log.add_route(TOPIC, Route(_TABLE, frozenset({Op.INSERT})))
    _publish(log, _COLUMNS)
    values = log.fetch(TOPIC, 0, 0).table().column("value").combine_chunks()
    texts = ValueReader(registry_of(log)).as_json(values).to_pylist()
    in_avro, in_json = (sum(map(len, each)) for each in (values.to_pylist(), texts))
    story.tell(f"{len(texts)} rows take {in_avro} bytes; as JSON they would take {in_json}.")
    story.check(
        "They are read back with the schema that the log has registered",
        holds=[json.loads(text)["city"] for text in texts] == [row["city"] for row in _ROWS],
    )
    _publish(log, _COLUMNS.append(pa.field("note", pa.string())))
    story.check(
        "A new column that may be null becomes version 2 of the schema",
        holds=registry_of(log).latest(_SUBJECT).version == 2,
    )
    written = log.offsets(TOPIC)[0].next_offset
    refused = ""
    try:
        _publish(log, _COLUMNS.append(pa.field("weight", pa.int32(), nullable=False)))
    except IncompatibleSchema as error:
        refused = str(error)
    story.check(
        "One that old records cannot fill is refused, and nothing was written",
        holds="'weight'" in refused and log.offsets(TOPIC)[0].next_offset == written,
    )


def _publish(log: EmbeddedLog, columns: pa.Schema) -> None:
    rows = [{**row, "weight": 1} if "weight" in columns.names else row for row in _ROWS]
    log.publish_rows(_TABLE, Op.INSERT, pa.Table.from_pylist(rows, columns), ["id"])
