"""What a consumer hands out: records one by one, or whole columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from duolog.client.model import Place
from duolog.errors import DuologError, InvalidRequest

if TYPE_CHECKING:
    import pyarrow as pa

    from duolog.client.model import Piece


@dataclass(frozen=True, slots=True)
class Undecoded:
    """Stands for a value that cannot be decoded; whoever asks for it is told why."""

    error: DuologError


@dataclass(frozen=True, slots=True)
class ConsumedRecord:
    """One record. `payload` is what was written, byte by byte; `value` what it means."""

    topic: str
    partition: int
    offset: int
    ts_ms: int
    key: bytes | None
    payload: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    op: str | None  # insert, update, delete or read; None for a record that is no change
    table: str | None
    payload_mode: str | None
    attempt: int
    _decoded: Any = field(repr=False)
    _piece: Piece = field(repr=False, compare=False)
    topic_id: int | None = None  # a topic that is made again has another; None from an older host

    @property
    def value(self) -> Any:
        """The decoded value; raises Undecodable when it is not what the topic says."""
        if isinstance(self._decoded, Undecoded):
            error = self._decoded.error
            raise type(error)(str(error))
        return self._decoded

    @property
    def message_id(self) -> str:
        """Names this record in its log: topic_id:partition:offset."""
        topic = self.topic if self.topic_id is None else self.topic_id
        return f"{topic}:{self.partition}:{self.offset}"


@dataclass(frozen=True, slots=True)
class RecordTable:
    """Records of one topic as an Arrow table, in order within each partition.

    Columns: partition_id, offset, ts, key, payload, op, source_table, payload_mode, headers; and
    value, where the topic's values are Avro or JSON.
    """

    topic: str
    table: pa.Table
    _pieces: tuple[Piece, ...] = field(repr=False, compare=False)
    topic_id: int | None = None

    def __len__(self) -> int:
        return int(self.table.num_rows)


Given: TypeAlias = ConsumedRecord | RecordTable | Iterable[ConsumedRecord | RecordTable]
"""What may be acknowledged at once."""


def flat(given: Iterable[Given]) -> Iterator[ConsumedRecord | RecordTable]:
    """One after the other. Raises InvalidRequest for what no consumer gave."""
    for one in given:
        if isinstance(one, ConsumedRecord | RecordTable):
            yield one
        elif isinstance(one, list | tuple | set | frozenset | Iterator):
            yield from flat(one)
        else:
            raise InvalidRequest(
                "Records or tables that this consumer gave can be acknowledged, and lists of them; "
                f"not a {type(one).__name__}."
            )


def pieces_of(given: ConsumedRecord | RecordTable) -> tuple[Piece, ...]:
    """The pieces that something handed out was made of."""
    if isinstance(given, ConsumedRecord):
        return (given._piece,)  # noqa: SLF001 - kept for this
    return given._pieces  # noqa: SLF001


def place_of(record: ConsumedRecord) -> Place:
    return record._piece.place  # noqa: SLF001
