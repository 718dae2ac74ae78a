"""From the plan of `resolve.py`, and the Arrow type that is to come out, to what reads bytes."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from duolog.avro.decode.blocks import BlocksReader
from duolog.avro.decode.decimals import DecimalReader
from duolog.avro.decode.leaves import (
    BooleanReader,
    EnumReader,
    FixedReader,
    FloatReader,
    IntegerReader,
    NullReader,
    TextReader,
)
from duolog.avro.decode.nested import Alternative, Member, RecordReader, UnionReader
from duolog.avro.decode.page import BEFORE, Page, Suspect
from duolog.avro.decode.reader import Reader, read_at
from duolog.avro.default_bytes import default_bytes
from duolog.avro.resolve import (
    Branch,
    Choice,
    Entries,
    Items,
    Members,
    Plan,
    Refusal,
    Symbol,
    Value,
    resolve,
)
from duolog.avro.schema import Field, Fixed, Kind, Primitive, Schema, Union
from duolog.avro.to_arrow import arrow_field
from duolog.errors import InvalidSchema

_DAY_TICKS: Final = {"ms": 86_400_000, "us": 86_400_000_000}


def reader_of(plan: Plan, kind: pa.DataType) -> Reader:
    """What reads by this plan, into arrays of this type."""
    match plan:
        case Value():
            return _value_reader(plan, kind)
        case Symbol(writer=writer, reader=reader, places=places):
            known = np.array([-1 if place is None else place for place in places], np.int32)
            return EnumReader(
                kind, writer.symbols, known, pa.array(reader.symbols, kind.value_type)
            )
        case Items(items=items):
            return BlocksReader(kind, reader_of(items, kind.value_type))
        case Entries(values=values):
            entry = pa.struct([kind.key_field, kind.item_field])
            key = TextReader(kind.key_type, is_text=True)
            value = reader_of(values, kind.item_type)
            members = (Member("key", key, 0), Member("value", value, 1))
            return BlocksReader(kind, RecordReader(entry, members))
        case Members():
            return _record_reader(plan, kind)
        case Choice(branches=branches, reader=reader):
            return _union_reader(branches, reader, kind, is_tagged=True)
        case Branch(reader=reader):
            return _union_reader((plan,), reader, kind, is_tagged=False)


def _record_reader(plan: Members, kind: pa.DataType) -> Reader:
    members = tuple(
        Member(
            step.name,
            _passing_over(step.plan)
            if step.place is None
            else reader_of(step.plan, kind.field(step.place).type),
            step.place,
        )
        for step in plan.steps
    )
    defaults = tuple(
        (place, _default(plan.reader.fields[place], kind.field(place).type))
        for place in plan.defaults
    )
    return RecordReader(kind, members, defaults)


def _passing_over(plan: Plan) -> Reader:
    return reader_of(plan, arrow_field(plan.reader, "").type)


def _default(field: Field, kind: pa.DataType) -> pa.Array:
    """The field's default, as an array of one value."""
    page = Page(np.frombuffer(default_bytes(field), np.uint8))
    reader = reader_of(resolve(field.type), kind)
    try:
        return read_at(reader, page, np.array([BEFORE]))
    except Suspect:
        raise InvalidSchema(
            f"The default of field '{field.name}' is no value of its type: {field.default}. "
            "Correct the reader's schema."
        ) from None


def _union_reader(
    branches: tuple[Plan | Refusal, ...], reader: Schema, kind: pa.DataType, *, is_tagged: bool
) -> Reader:
    """A union that was written, or that is to be read, or both."""
    if isinstance(reader, Union):
        full = [index for index, branch in enumerate(reader.branches) if not _is_null(branch)]
        places = {branch: place for place, branch in enumerate(full)}
    else:
        places = {}
        full = [0]
    members = tuple(field.type for field in kind) if len(full) > 1 else tuple(kind for _ in full)
    alternatives = []
    for branch in branches:
        if isinstance(branch, Refusal):
            alternatives.append(Alternative(None, reason=branch.reason))
        elif not isinstance(branch, Branch):
            alternatives.append(Alternative(reader_of(branch, kind), 0))
        elif branch.index in places:
            place = places[branch.index]
            alternatives.append(Alternative(reader_of(branch.plan, members[place]), place))
        else:
            alternatives.append(Alternative(NullReader(pa.null())))
    return UnionReader(kind, members, tuple(alternatives), is_tagged)


def _value_reader(plan: Value, kind: pa.DataType) -> Reader:
    writer = plan.writer
    is_decimal = pa.types.is_decimal(kind)
    if isinstance(writer, Fixed):
        return DecimalReader(kind, writer.size) if is_decimal else FixedReader(kind, writer.size)
    match writer.kind:
        case Kind.NULL:
            return NullReader(kind)
        case Kind.BOOLEAN:
            return BooleanReader(kind)
        case Kind.INT | Kind.LONG:
            return _integer_reader(writer.kind, kind)
        case Kind.FLOAT | Kind.DOUBLE:
            return FloatReader(kind, 4 if writer.kind is Kind.FLOAT else 8, f"f{_width(kind)}")
        case Kind.BYTES | Kind.STRING if is_decimal:
            return DecimalReader(kind, None)
        case Kind.BYTES | Kind.STRING:
            return TextReader(kind, is_text=Kind.STRING in {writer.kind, _kind(plan)})


def _integer_reader(written: Kind, kind: pa.DataType) -> Reader:
    if pa.types.is_time(kind):
        return IntegerReader(kind, f"i{_width(kind)}", 0, _DAY_TICKS[kind.unit] - 1, "time of day")
    limit = 1 << (31 if written is Kind.INT else 63)
    stored = f"{'f' if pa.types.is_floating(kind) else 'i'}{_width(kind)}"
    return IntegerReader(kind, stored, -limit, limit - 1, f"{written}")


def _kind(plan: Value) -> Kind | None:
    return plan.reader.kind if isinstance(plan.reader, Primitive) else None


def _width(kind: pa.DataType) -> int:
    return int(kind.bit_width) // 8


def _is_null(schema: Schema) -> bool:
    return isinstance(schema, Primitive) and schema.kind is Kind.NULL
