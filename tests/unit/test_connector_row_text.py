"""Rows as JSON for people: every row has a text, and it is JSON."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duolog.connector.row_text import change_rows, cut_to_size, rows_as_json
from duolog.log.model import Op
from duolog.log.routing.changes import Changes

FAR = 10**18  # microseconds: beyond the years that a date can be written in


def texts(columns: dict[str, Any]) -> list[Any]:
    return [json.loads(text) for text in rows_as_json(pa.RecordBatch.from_pydict(columns))]


def test_rows_are_written_as_the_format_json_writes_them() -> None:
    rows = texts({"id": [1, None], "raw": [b"\xff", None], "tags": [["a"], []]})
    assert rows == [
        {"id": 1, "raw": "/w==", "tags": ["a"]},
        {"id": None, "raw": None, "tags": []},
    ]


def test_what_json_has_no_form_for_is_written_as_text() -> None:
    rows = texts(
        {
            "id": [1, 2],
            'a "name"': pa.array([5, None], pa.duration("us")),
            "at": pa.array([FAR, 0], pa.timestamp("us", "UTC")),
            "inside": pa.array([{"at": FAR}, None], pa.struct([("at", pa.timestamp("us"))])),
        }
    )
    assert rows[0] == {"id": 1, 'a "name"': "0:00:00.000005", "at": str(FAR), "inside": "?"}
    assert rows[1] == {"id": 2, 'a "name"': None, "at": "1970-01-01T00:00:00Z", "inside": None}


@given(
    st.dictionaries(st.text(max_size=20), st.text() | st.integers() | st.none(), max_size=5),
    st.integers(2, 300),
)
def test_a_cut_row_is_json_and_fits(row: dict[str, Any], limit: int) -> None:
    text = json.dumps(row, ensure_ascii=False).encode()
    cut = cut_to_size(text, limit)
    assert len(cut) <= limit
    assert isinstance(json.loads(cut), dict)
    assert (cut == text) == (len(text) <= limit)


def test_short_values_stay_whole_when_a_long_one_is_cut() -> None:
    cut = json.loads(cut_to_size(json.dumps({"id": 7, "note": "x" * 1000}).encode(), 200))
    assert cut["id"] == 7
    assert cut["note"].startswith("xxx")
    assert cut["note"].endswith("…")


@pytest.mark.parametrize("start", [0, 2])
def test_changes_are_told_with_both_images(start: int) -> None:
    rows = pa.RecordBatch.from_pydict({"id": [1, 2, 3, 4]})
    changes = Changes.of(
        "t",
        ("id",),
        op=pa.array([Op.INSERT, Op.UPDATE, Op.DELETE, Op.DELETE], pa.int8()),
        after=rows,
        before=rows,
        before_known=pa.array([False, True, True, False]),
        ts=pa.array([0] * 4),
    ).slice(start, 4 - start)
    told = [json.loads(text) for text in rows_as_json(change_rows(changes))]
    assert (
        told
        == [
            {"op": "insert", "before": None, "after": {"id": 1}},
            {"op": "update", "before": {"id": 2}, "after": {"id": 2}},
            {"op": "delete", "before": {"id": 3}, "after": None},
            {"op": "delete", "before": None, "after": {"id": 4}},
        ][start:]
    )
