"""The gate for batches that somebody else has encoded: strict, pure, before anything is written.

A batch gets in only if everybody can read it back: decoded whole, its values those of records, and
none larger than a record may be. How much memory it would take is known before it is unpacked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from duolog.errors import InvalidRecord, RecordTooLarge
from duolog.log.arrow_metadata import WrongBatch
from duolog.log.batch import (
    MAX_UNPACKED_BYTES,
    RECORD_SCHEMA,
    BatchHeader,
    header_of,
    is_packed,
    unpacked,
)
from duolog.log.batch_values import header_counts, longest_name, record_sizes
from duolog.log.model import MAX_RECORD_BYTES
from duolog.log.record_check import MAX_HEADERS, MAX_NAME_CHARACTERS

_USUAL_BYTES: Final = 64 << 20  # many times what a task puts into a batch
_PACKED_BYTES: Final = 4 << 20
_ROW_BYTES: Final = 64  # of a record, beside its contents: numbers, offsets, bitmaps
_HEADER_BYTES: Final = 16  # of one of its headers
_PADDING_BYTES: Final = 64 << 10  # of all buffers together, and of a packed batch's metadata


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """How large a batch may be, before and after it is unpacked."""

    max_record_bytes: int = MAX_RECORD_BYTES

    @property
    def max_unpacked_bytes(self) -> int:
        """Of one batch. A task ends one soon behind `batch.TARGET_BYTES`."""
        return min(MAX_UNPACKED_BYTES, _USUAL_BYTES + 2 * self.max_record_bytes)

    @property
    def max_encoded_bytes(self) -> int:
        """Of one batch: what does not pack well stays about as large as it is."""
        return self.max_unpacked_bytes + _PADDING_BYTES

    @property
    def max_packed_bytes(self) -> int:
        """Of a batch of few records, whose headers and tables are JSON: ours are far smaller."""
        return _PACKED_BYTES + 2 * self.max_record_bytes

    def unpacked_bytes_of(self, count: int) -> int:
        """Of so many records."""
        most = self.max_record_bytes + _ROW_BYTES + MAX_HEADERS * _HEADER_BYTES
        return min(self.max_unpacked_bytes, count * most + _PADDING_BYTES)


def check_batch(encoded: bytes, limits: BatchLimits) -> tuple[BatchHeader, Any]:
    """The header of a batch and its records, a pa.RecordBatch that can be trusted.

    Raises WrongBatch for what is no batch, RecordTooLarge and InvalidRecord for records that no
    topic takes, UnsupportedFormat for a newer batch.
    """
    if len(encoded) > limits.max_encoded_bytes:
        raise WrongBatch(f"it has {len(encoded)} bytes, {limits.max_encoded_bytes} go in")
    header = header_of(encoded)
    if is_packed(header) and len(encoded) > limits.max_packed_bytes:
        raise WrongBatch(f"it has {len(encoded)} bytes, {limits.max_packed_bytes} go in")
    records = unpacked(encoded, limits.unpacked_bytes_of(header.count))
    check_sizes(records, limits.max_record_bytes)
    return header, records


def check_sizes(records: Any, max_record_bytes: int) -> None:
    """Refuse records that are over the limit with their key, value, headers and table, and names
    that nobody else could publish.
    """
    if records.column(_TABLE).null_count < records.num_rows:
        _check_names(records.column(_TABLE), "table")
    if len(records.column(_HEADERS).values):
        _check_names(records.column(_HEADERS).values.field(0), "header name")
        counts = header_counts(records)
        most = int(counts.max())
        if most > MAX_HEADERS:
            raise InvalidRecord(
                f"Record {int(counts.argmax())} of a batch has {most} headers, {MAX_HEADERS} go in."
            )
    if records.nbytes <= max_record_bytes:
        return
    sizes = record_sizes(records)
    largest = int(sizes.max())
    if largest > max_record_bytes:
        raise RecordTooLarge(
            f"Record {int(sizes.argmax())} of a batch has {largest} bytes, over the limit of "
            f"{max_record_bytes}. Make it smaller, or raise max_record_bytes (and "
            "max.message.bytes of its Kafka topic)."
        )


def _check_names(names: Any, what: str) -> None:
    longest = longest_name(names)
    if longest > MAX_NAME_CHARACTERS:
        raise InvalidRecord(
            f"A record's {what} has {longest} characters, {MAX_NAME_CHARACTERS} go in."
        )


_TABLE: Final = RECORD_SCHEMA.get_field_index("table")
_HEADERS: Final = RECORD_SCHEMA.get_field_index("headers")
