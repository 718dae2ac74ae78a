"""What turns columns into keys and values of records: prepared once, then run on whole batches.

Whoever knows the schema calls `Codec.prepare`, once for each kind of record; that is where a
registry is asked and where columns that a format cannot carry are refused. The encoder that comes
back is picklable and goes to the tasks.

What is encoded is a struct column, payload and envelope as ordinary Arrow fields:
- a null struct is a record without key or value (a tombstone): it is encoded as null;
- what lies below a null struct has no meaning, whatever its fields say about nulls;
- a column that a row may lack is marked as in `optional.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from duolog.errors import InvalidSetting
from duolog.log.model import Envelope, Format, PayloadMode

if TYPE_CHECKING:
    import pyarrow as pa


class Part(StrEnum):
    """Which bytes are made."""

    KEY = "key"
    VALUE = "value"
    PLACE = "place"  # only hashed to find a partition, never stored


@dataclass(frozen=True, slots=True)
class Subject:
    """What is encoded, for schema names and messages."""

    topic: str
    table: str
    part: Part
    payload: PayloadMode = PayloadMode.NONE
    envelope: Envelope = Envelope.FLAT
    json_int64_as_string: bool = False

    def __str__(self) -> str:
        return f"{self.part} of table '{self.table}' in topic '{self.topic}'"


class Encoder(Protocol):
    """Encodes rows of the schema that it was prepared for. Picklable."""

    def encode(self, rows: pa.StructArray) -> pa.BinaryArray:
        """One body a row; null where the row is null."""


class Codec(Protocol):
    """One format."""

    def prepare(self, schema: pa.Schema, subject: Subject) -> Encoder:
        """An encoder of rows with these columns.

        Raises InvalidRows for columns that the format has no form for.
        """


Codecs = Mapping[Format, Codec]


def codec_for(codecs: Codecs, wanted: Format, subject: Subject) -> Codec:
    """The codec of a format; InvalidSetting when there is none."""
    codec = codecs.get(wanted)
    if codec is None:
        raise InvalidSetting(
            f"The {subject} is to be written as '{wanted}', which is not available here. "
            f"Available: {', '.join(sorted(codecs))}."
        )
    return codec
