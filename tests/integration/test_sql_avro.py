"""SELECT over topics in Avro: columns from the schemas their values were written with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import duolog
from duolog.avro.embedded import registry_for
from duolog.avro.reading import ValueReader
from duolog.errors import Undecodable
from duolog.log.embedded import EmbeddedLog
from duolog.log.model import Format, Op, Record, Route, TopicSettings
from duolog.sql import run

VALUE = '{"_table":"shop.o","id":2,"name":null}'
AVRO = TopicSettings(key_format=Format.AVRO, value_format=Format.AVRO)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with duolog.open_log(tmp_path / "log") as log:
        log.create_topic("t", AVRO)
        log.add_route("t", Route("shop.o", frozenset({Op.INSERT, Op.DELETE})))
        yield log


def write(log: EmbeddedLog, table: str = "shop.o", **columns: pa.Array) -> None:
    log.publish_rows(table, Op.INSERT, pa.table(columns), ["id"], ts_ms=1)


def rows(log: EmbeddedLog, sql: str, *, decoded: bool = True) -> list[dict[str, Any]]:
    reader = ValueReader(registry_for(log)) if decoded else None
    found: list[dict[str, Any]] = run(log, sql, reader=reader).table().to_pylist()
    return found


def test_values_have_the_columns_of_their_schema(log: EmbeddedLog) -> None:
    write(log, id=pa.array([1, 2], pa.int32()), name=pa.array(["a", None]))
    found = run(log, "SELECT * FROM t", reader=ValueReader(registry_for(log)))
    assert found.schema.field("id").type == pa.int32()
    assert rows(log, "SELECT key, value, id, name FROM t WHERE id > 1") == [
        {"key": '{"id":2}', "value": VALUE, "id": 2, "name": None}
    ]


def test_older_and_newer_schemas_together(log: EmbeddedLog) -> None:
    write(log, id=pa.array([1], pa.int32()), qty=pa.array([5], pa.int32()))
    write(
        log,
        id=pa.array([2], pa.int32()),
        qty=pa.array([2**40], pa.int64()),
        name=pa.array(["x"]),
    )
    log.publish("t", Record(None, op=Op.DELETE))
    assert rows(log, "SELECT id, qty, name FROM t ORDER BY offset") == [
        {"id": 1, "qty": 5, "name": None},
        {"id": 2, "qty": 2**40, "name": "x"},
        {"id": None, "qty": None, "name": None},
    ]


def test_types_that_do_not_go_together_are_no_column(tmp_path: Path) -> None:
    by_record = {"value.subject.name.strategy": "RecordNameStrategy"}
    with duolog.open_log(tmp_path / "other", avro=by_record) as log:
        log.create_topic("t", AVRO)
        _two_types_of_one_field(log)


def _two_types_of_one_field(log: EmbeddedLog) -> None:
    for table in ("shop.o", "shop.p"):
        log.add_route("t", Route(table, frozenset({Op.INSERT})))
    write(log, id=pa.array([1], pa.int32()), x=pa.array([5]))
    write(log, "shop.p", id=pa.array([2], pa.int32()), x=pa.array([[1]], pa.list_(pa.int64())))
    found = run(log, "SELECT * FROM t", reader=ValueReader(registry_for(log)))
    assert "x" not in found.columns
    assert [row["value"] for row in rows(log, "SELECT value FROM t")] == [
        '{"_table":"shop.o","id":1,"x":5}',
        '{"_table":"shop.p","id":2,"x":[1]}',
    ]


def test_nested_fields(log: EmbeddedLog) -> None:
    address = pa.array([{"city": "Ulm", "lines": ["a", "b"]}])
    write(log, id=pa.array([1]), at=address)
    assert rows(log, "SELECT at['city'] AS city, at['lines'][1] AS line FROM t") == [
        {"city": "Ulm", "line": "a"}
    ]


def test_a_record_that_is_no_avro(log: EmbeddedLog) -> None:
    write(log, id=pa.array([1], pa.int32()))
    log.publish("t", Record(b"plain"))
    assert rows(log, "SELECT offset, table FROM t") == [
        {"offset": 0, "table": "shop.o"},
        {"offset": 1, "table": None},
    ]
    for column in ("id", "value"):
        with pytest.raises(Undecodable, match="Topic 't' partition 0, from offset 0 on: Row 1"):
            rows(log, f"SELECT {column} FROM t")
        assert len(rows(log, f"SELECT {column} FROM t WHERE offset = 0")) == 1
    assert [row["value"] for row in rows(log, "CONSUME FROM t")][1] == b"plain"


def test_without_a_reader_keys_and_values_are_bytes(log: EmbeddedLog) -> None:
    write(log, id=pa.array([1], pa.int32()))
    (row,) = rows(log, "SELECT * FROM t", decoded=False)
    assert row["value"][:1] == b"\0"
    assert "id" not in row
