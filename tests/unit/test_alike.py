"""Columns whose values Arrow would change to make them one type are refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from duolog.errors import InvalidRows
from duolog.log.routing.alike import DEEPEST
from duolog.log.routing.given_rows import as_batch

NOON = datetime(2020, 1, 1, 12, 30)  # noqa: DTZ001 - without a zone, as rows may have it


def rows(*values: Any) -> list[dict[str, Any]]:
    return [{"at": value} for value in values]


@pytest.mark.parametrize(
    "values",
    [
        (date(2020, 1, 1), NOON),
        (NOON, date(2020, 1, 1)),
        (NOON, NOON.replace(tzinfo=UTC)),
        (date(2020, 1, 1), 5),
        (NOON, 5),
        (5, True),
        (5.5, True),
        ("x", b"x"),
        (0.1, Decimal("0.1")),
        ("x", None, 5),
    ],
    ids=repr,
)
def test_mixtures_are_refused_by_name(values: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidRows, match=r"Column 'at' .* cannot be made one type: it has .* and"):
        as_batch("shop.orders", rows(*values))


@pytest.mark.parametrize(
    "values",
    [
        (1, 2.5, None),
        (1, np.int64(2)),
        (NOON, None),
        ([1], None, []),
        ({"a": 1}, {"b": 2}),
        (None, None),
    ],
    ids=repr,
)
def test_values_of_one_kind_are_taken(values: tuple[Any, ...]) -> None:
    assert len(as_batch("shop.orders", rows(*values))) == len(values)


def test_a_key_is_whole_or_double_and_not_both() -> None:
    with pytest.raises(InvalidRows, match="double and whole number"):
        as_batch("shop.orders", rows(1, 1.0), ["at"])


def nested_dict(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


def nested_list(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def endless(_: int) -> Any:
    value: list[Any] = []
    value += [value, value]
    return value


@pytest.mark.parametrize("nest", [nested_dict, nested_list, endless])
@pytest.mark.parametrize("depth", [DEEPEST + 1, 20_000])
def test_what_is_too_deep_is_refused_and_ends_nothing(
    nest: Callable[[int], Any], depth: int
) -> None:
    with pytest.raises(InvalidRows, match="deep within one another"):
        as_batch("shop.orders", rows(nest(depth)))


def test_arrow_that_is_not_what_it_says_is_refused() -> None:
    offsets = pa.py_buffer(np.array([0, 2], np.int32))
    text = pa.Array.from_buffers(pa.string(), 1, [None, offsets, pa.py_buffer(b"\xff\xfe")])
    with pytest.raises(InvalidRows, match="Invalid UTF8"):
        as_batch("shop.orders", pa.table({"a": text}))
