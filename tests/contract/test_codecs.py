"""What every format promises to those who route rows through it. A new one is added to `FORMS`."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from duolog.avro.codec import AvroCodec
from duolog.avro.registry.documents import MemoryDocuments
from duolog.avro.registry.options import RegistryOptions
from duolog.avro.registry.service import RegistryService
from duolog.avro.registry.settle import RegisteredSchemas
from duolog.errors import DuologError
from duolog.log.routing.codec import Codec, Encoder, Part, Subject
from duolog.log.routing.json_codec import JsonCodec
from duolog.log.routing.optional import optional_field
from duolog.log.routing.raw_codec import RawCodec

SUBJECT = Subject("orders", "shop.orders", Part.VALUE)


@dataclass(frozen=True)
class Form:
    """A format, and columns that it takes."""

    codec: Callable[[], Codec]
    columns: pa.Schema
    rows: tuple[dict[str, Any], ...]
    refused: pa.Schema


def avro() -> Codec:
    registry = RegistryService(MemoryDocuments())
    return AvroCodec(RegisteredSchemas(registry, RegistryOptions.of({}).serializer))


TYPED = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("item", pa.string()),
        pa.field("price", pa.decimal128(9, 2)),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("place", pa.struct([("city", pa.string()), ("zip", pa.int32())])),
        optional_field(pa.field("note", pa.string())),
    ]
)
ORDERS: tuple[dict[str, Any], ...] = (
    {"id": 1, "item": "tea", "tags": ["a", None], "place": {"city": "é", "zip": 7}},
    {"id": 2**40, "item": None, "price": None, "note": {"value": None}},
    {"id": -3, "item": "", "tags": [], "place": {"city": None, "zip": None}},
    {"id": 4, "note": {"value": "now"}},
)
NO_FORM = pa.schema([pa.field("took", pa.duration("s"))])

FORMS = {
    "json": Form(JsonCodec, TYPED, ORDERS, NO_FORM),
    "avro": Form(avro, TYPED, ORDERS, NO_FORM),
    "raw": Form(
        RawCodec,
        pa.schema([pa.field("value", pa.binary())]),
        ({"value": b"\x00"}, {"value": b""}, {"value": b"long enough to matter"}),
        pa.schema([pa.field("value", pa.int64())]),
    ),
}


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> Form:
    return FORMS[request.param]


@pytest.fixture
def encoder(form: Form) -> Encoder:
    return form.codec().prepare(form.columns, SUBJECT)


def struct_of(form: Form, rows: list[dict[str, Any] | None]) -> pa.StructArray:
    return pa.array(rows, pa.struct(list(form.columns)))


def test_there_is_one_body_a_row_and_they_differ(form: Form, encoder: Encoder) -> None:
    bodies = encoder.encode(struct_of(form, list(form.rows)))
    assert bodies.type == pa.binary()
    assert len(set(bodies.to_pylist())) == len(form.rows)


def test_a_null_row_has_no_body(form: Form, encoder: Encoder) -> None:
    bodies = encoder.encode(struct_of(form, [None, form.rows[0], None]))
    assert [body is None for body in bodies.to_pylist()] == [True, False, True]


def test_what_lies_below_a_null_row_has_no_meaning(form: Form, encoder: Encoder) -> None:
    rows = struct_of(form, list(form.rows))
    hidden = pa.StructArray.from_arrays(
        [rows.field(index) for index in range(len(form.columns))],
        fields=list(form.columns),
        mask=pa.array([True] + [False] * (len(rows) - 1)),
    )
    bodies = encoder.encode(hidden).to_pylist()
    assert bodies == [None, *encoder.encode(rows).to_pylist()[1:]]


def test_a_body_depends_on_its_row_alone(form: Form, encoder: Encoder) -> None:
    together = encoder.encode(struct_of(form, list(form.rows))).to_pylist()
    alone = [encoder.encode(struct_of(form, [row]))[0].as_py() for row in form.rows]
    assert together == alone


def test_a_slice_is_encoded_as_its_rows(form: Form, encoder: Encoder) -> None:
    rows = struct_of(form, [*form.rows, None, *form.rows])
    whole = encoder.encode(rows).to_pylist()
    for begin in range(len(rows)):
        assert encoder.encode(rows.slice(begin, 3)).to_pylist() == whole[begin : begin + 3]


def test_no_rows_give_no_bodies(form: Form, encoder: Encoder) -> None:
    assert encoder.encode(struct_of(form, [])).to_pylist() == []


def test_an_encoder_travels_to_a_task(form: Form, encoder: Encoder) -> None:
    rows = struct_of(form, list(form.rows))
    travelled = pickle.loads(pickle.dumps(encoder))
    assert travelled.encode(rows).to_pylist() == encoder.encode(rows).to_pylist()


def test_preparing_again_gives_the_same_bytes(form: Form) -> None:
    codec = form.codec()
    rows = struct_of(form, list(form.rows))
    first, second = (codec.prepare(form.columns, SUBJECT).encode(rows) for _ in range(2))
    assert first.to_pylist() == second.to_pylist()


def test_what_has_no_form_is_refused_before_a_row_is_seen(form: Form) -> None:
    with pytest.raises(DuologError, match=form.refused.names[0]):
        form.codec().prepare(form.refused, SUBJECT)
