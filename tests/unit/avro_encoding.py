"""Schemas for columns, and what they are written as: by our encoder and by fastavro."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa

from duolog.avro.encode.encoder import encoder_of
from duolog.avro.parse import parse_schema

TIMES = {"type": "long", "logicalType": "timestamp-millis"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-micros"}
DATE = {"type": "int", "logicalType": "date"}
TIME = {"type": "int", "logicalType": "time-millis"}
COLORS = {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]}
MEMBERS = pa.struct([("member0", pa.string()), ("member1", pa.int64())])
SHAPES = {"type": "enum", "name": "Shape", "symbols": ["DISC", "CUBE"]}


def decimal(precision: int, scale: int) -> dict[str, Any]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def fixed(size: int, name: str = "Bytes") -> dict[str, Any]:
    return {"type": "fixed", "name": name, "size": size}


def record(**fields: Any) -> dict[str, Any]:
    members = [
        kind if isinstance(kind, dict) and "default" in kind else {"type": kind}
        for kind in fields.values()
    ]
    named = [{"name": name, **member} for name, member in zip(fields, members, strict=True)]
    return {"type": "record", "name": "Row", "fields": named}


def with_default(kind: Any, default: Any) -> dict[str, Any]:
    return {"type": kind, "default": default}


def encode(schema: dict[str, Any], **columns: pa.Array) -> list[bytes | None]:
    rows = pa.StructArray.from_arrays(list(columns.values()), names=list(columns))
    encoder = encoder_of(rows.type, parse_schema(json.dumps(schema)))
    bodies: list[bytes | None] = encoder.encode(rows).to_pylist()
    return bodies


def written(schema: dict[str, Any], *rows: dict[str, Any]) -> list[bytes | None]:
    """The bodies that fastavro writes."""
    parsed = fastavro.parse_schema(schema)
    bodies: list[bytes | None] = []
    for row in rows:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, parsed, row)
        bodies.append(stream.getvalue())
    return bodies
