"""Schemas and values made at random, and what Arrow should say of them, worked out from fastavro.

fastavro reads and writes without logical types here: it gives the numbers as they are in the
bytes, also where Python has no date or time for them. What they become is worked out below.
"""

from __future__ import annotations

import io
import json
import math
import random
import struct
from decimal import Context
from typing import Any

import fastavro
import pyarrow as pa

from duolog.avro.parse import parse_schema
from duolog.avro.schema import Schema

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
LOGICAL: tuple[dict[str, Any], ...] = (
    {"type": "int", "logicalType": "date"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "long", "logicalType": "time-micros"},
    *(
        {"type": "long", "logicalType": f"{zone}timestamp-{unit}s"}
        for zone in ("", "local-")
        for unit in ("milli", "micro", "nano")
    ),
    {"type": "string", "logicalType": "uuid"},
    *(
        {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}
        for precision, scale in ((1, 0), (9, 2), (18, 18), (19, 3), (20, 0), (38, 6), (39, 0))
    ),
    {"type": "bytes", "logicalType": "decimal", "precision": 76, "scale": 10},
)
# Of each of these, a union has one at most: by them Python can tell its values apart.
_CLASSES = {
    "null": "none", "boolean": "bool", "int": "number", "long": "number", "float": "number",
    "double": "number", "bytes": "bytes", "fixed": "bytes", "string": "str", "enum": "str",
    "array": "list", "map": "dict", "record": "dict",
}  # fmt: skip
_EXACT = Context(prec=200)
_DAY_TICKS = {"time-millis": 86_400_000, "time-micros": 86_400_000_000}


def kind_of(schema: Any) -> str:
    """The name of the type, whatever form the schema has."""
    if isinstance(schema, list):
        return "union"
    return str(schema["type"] if isinstance(schema, dict) else schema)


class Cases:
    """Random schemas and values, all from one seed."""

    def __init__(self, seed: int, *, has_text_and_bytes: bool = True) -> None:
        self.random = random.Random(seed)
        self._names = 0
        self._classes = dict(_CLASSES)
        if not has_text_and_bytes:  # in one union, of which fastavro takes one for the other
            self._classes |= dict.fromkeys(("bytes", "fixed"), "str")

    def name(self) -> str:
        self._names += 1
        return f"n{self._names}"

    def record(self, depth: int) -> dict[str, Any]:
        fields = [
            {"name": self.name(), "type": self.schema(depth - 1)}
            for _ in range(self.random.randrange(6))
        ]
        return {"type": "record", "name": self.name(), "fields": fields}

    def schema(self, depth: int) -> Any:
        kinds = ["primitive", "primitive", "logical", "fixed", "enum", "fixed decimal"]
        if depth > 0:
            kinds += ["array", "map", "record", "nullable", "nullable", "union"]
        match self.random.choice(kinds):
            case "primitive":
                return self.random.choice(PRIMITIVES)
            case "logical":
                return dict(self.random.choice(LOGICAL))
            case "fixed":
                return {
                    "type": "fixed",
                    "name": self.name(),
                    "size": self.random.choice((1, 3, 16)),
                }
            case "fixed decimal":
                return {
                    "type": "fixed", "name": self.name(), "size": 12,
                    "logicalType": "decimal", "precision": 27, "scale": 4,
                }  # fmt: skip
            case "enum":
                return {"type": "enum", "name": self.name(), "symbols": ["A", "B", "C"]}
            case "array":
                return {"type": "array", "items": self.schema(depth - 1)}
            case "map":
                return {"type": "map", "values": self.schema(depth - 1)}
            case "record":
                return self.record(depth)
            case "nullable":
                inner = self.schema(depth - 1)
                if kind_of(inner) in {"null", "union"}:
                    return inner
                return self.random.choice((["null", inner], [inner, "null"]))
            case _:
                branches: dict[str, Any] = {}
                for _ in range(self.random.randrange(1, 5)):
                    inner = self.schema(depth - 1)
                    if kind_of(inner) != "union":
                        branches[self._classes[kind_of(inner)]] = inner
                return list(branches.values()) or ["null"]

    def value(self, schema: Any) -> Any:
        pick = self.random
        match kind_of(schema):
            case "null":
                return None
            case "boolean":
                return pick.random() < 0.5
            case "int" | "long" as kind:
                ticks = _DAY_TICKS.get(logical_of(schema))
                return (
                    pick.randrange(ticks) if ticks else self._integer(32 if kind == "int" else 64)
                )
            case "float":
                return struct.unpack("<f", struct.pack("<f", pick.gauss(0, 1e6)))[0]
            case "double":
                return pick.choice((0.0, -0.0, math.inf, -math.inf, math.nan, pick.gauss(0, 1e200)))
            case "bytes":
                if logical_of(schema) == "decimal":
                    limit = 10 ** schema["precision"] - 1
                    number = pick.choice((pick.randint(-limit, limit), pick.randint(-9, 9), limit))
                    return number.to_bytes(number.bit_length() // 8 + 1, "big", signed=True)
                return pick.randbytes(pick.choice((0, 1, 5, 20, 200)))
            case "string":
                return "".join(pick.choices('aZ"\x00é€𝄞', k=pick.choice((0, 1, 7, 30, 100))))
            case "fixed":
                if logical_of(schema) == "decimal":
                    return pick.randint(-(10**27) + 1, 10**27 - 1).to_bytes(12, "big", signed=True)
                return pick.randbytes(schema["size"])
            case "enum":
                return pick.choice(schema["symbols"])
            case "array":
                return [self.value(schema["items"]) for _ in range(self._length())]
            case "map":
                return {f"k{n}": self.value(schema["values"]) for n in range(self._length())}
            case "record":
                return {field["name"]: self.value(field["type"]) for field in schema["fields"]}
            case _:
                return self.value(pick.choice(schema))

    def _length(self) -> int:
        return self.random.choice((0, 0, 1, 2, 3, 7))

    def _integer(self, bits: int) -> int:
        limit = 1 << bits - 1
        low = self.random.getrandbits(self.random.randrange(bits))
        return self.random.choice((low, -low, 0, limit - 1, -limit))


def has_empty_items(schema: Any) -> bool:
    """Whether it has arrays whose items take no bytes: fastavro makes as many as it is told to."""
    match kind_of(schema):
        case "array":
            return _is_empty(schema["items"]) or has_empty_items(schema["items"])
        case "map":
            return has_empty_items(schema["values"])
        case "record":
            return any(has_empty_items(field["type"]) for field in schema["fields"])
        case "union":
            return any(has_empty_items(branch) for branch in schema)
        case _:
            return False


def _is_empty(schema: Any) -> bool:
    if kind_of(schema) == "record":
        return all(_is_empty(field["type"]) for field in schema["fields"])
    return kind_of(schema) == "null"


def logical_of(schema: Any) -> str:
    return str(schema.get("logicalType", "")) if isinstance(schema, dict) else ""


def bare(schema: Any) -> Any:
    """The same without logical types."""
    if isinstance(schema, list):
        return [bare(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if key != "logicalType"}
    for key in ("items", "values"):
        if key in kept:
            kept[key] = bare(kept[key])
    if "fields" in kept:
        kept["fields"] = [{**field, "type": bare(field["type"])} for field in kept["fields"]]
    return kept


class Reference:
    """fastavro for one schema, or for two."""

    def __init__(self, writer: Any, reader: Any = None) -> None:
        self.schema = reader or writer
        self._writer = fastavro.parse_schema(json.loads(json.dumps(bare(writer))))
        self._reader = None
        if reader is not None:
            self._reader = fastavro.parse_schema(json.loads(json.dumps(bare(reader))))

    def body(self, value: Any) -> bytes:
        written = io.BytesIO()
        fastavro.schemaless_writer(written, self._writer, value)
        return written.getvalue()

    def value(self, body: bytes) -> tuple[Any, int]:
        """What the body says, and how many bytes were left."""
        source = io.BytesIO(body)
        value = fastavro.schemaless_reader(source, self._writer, self._reader)
        return expected(self.schema, value), len(body) - source.tell()


def parsed(schema: Any) -> Schema:
    return parse_schema(json.dumps(schema))


def expected(schema: Any, value: Any) -> Any:
    """A value from fastavro as `shown` has it; also a default, which fastavro leaves as JSON."""
    match kind_of(schema):
        case "float":
            return _number(struct.unpack("<f", struct.pack("<f", value))[0])
        case "double":
            return _number(float(value))
        case "bytes" | "fixed":
            raw = value.encode("latin-1") if isinstance(value, str) else value
            if logical_of(schema) == "decimal":
                return int.from_bytes(raw, "big", signed=True)
            return raw
        case "array":
            return [expected(schema["items"], item) for item in value]
        case "map":
            return {key: expected(schema["values"], item) for key, item in value.items()}
        case "record":
            return {
                field["name"]: expected(
                    field["type"],
                    value[field["name"]] if field["name"] in value else field["default"],
                )
                for field in schema["fields"]
            }
        case "union":
            full = [branch for branch in schema if kind_of(branch) != "null"]
            if value is None or not full:
                return None
            if len(full) == 1:
                return expected(full[0], value)
            chosen = next(index for index, branch in enumerate(full) if _is_of(branch, value))
            return {
                f"member{index}": expected(branch, value) if index == chosen else None
                for index, branch in enumerate(full)
            }
        case _:
            return value


def _is_of(schema: Any, value: Any) -> bool:
    names = {bool: "bool", int: "number", float: "number", bytes: "bytes", str: "str"}
    names |= {list: "list", dict: "dict"}
    return _CLASSES[kind_of(schema)] == names[type(value)]


def _number(value: float) -> Any:
    return "NaN" if math.isnan(value) else (value, math.copysign(1, value))


def shown(array: pa.Array) -> list[Any]:
    """The values as the numbers, bytes and texts that they were written as."""
    kind = array.type
    types = pa.types
    if types.is_dictionary(kind):
        return list(array.to_pylist())
    if types.is_struct(kind):
        children = [shown(child) for child in array.flatten()]
        names = [field.name for field in kind]
        rows = zip(*children, strict=True) if children else ((),) * len(array)
        valid = array.is_valid().to_pylist()
        return [
            dict(zip(names, row, strict=True)) if there else None
            for there, row in zip(valid, rows, strict=True)
        ]
    if types.is_map(kind):
        entries = list(zip(shown(array.keys), shown(array.items), strict=True))
        return [None if cut is None else dict(entries[cut]) for cut in _cuts(array)]
    if types.is_list(kind):
        items = shown(array.values)
        return [None if cut is None else items[cut] for cut in _cuts(array)]
    if types.is_decimal(kind):
        values = array.to_pylist()
        return [None if v is None else int(v.scaleb(kind.scale, _EXACT)) for v in values]
    if types.is_temporal(kind):
        return list(array.view(pa.int32() if kind.bit_width == 32 else pa.int64()).to_pylist())
    if types.is_floating(kind):
        return [None if value is None else _number(value) for value in array.to_pylist()]
    return list(array.to_pylist())


def _cuts(array: pa.Array) -> list[slice | None]:
    bounds = array.offsets.to_pylist()
    valid = array.is_valid().to_pylist()
    return [
        slice(begin, end) if there else None
        for begin, end, there in zip(bounds[:-1], bounds[1:], valid, strict=True)
    ]
