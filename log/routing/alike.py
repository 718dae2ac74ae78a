"""Whether the values of a column are of one kind, before Arrow makes one type of them.

Arrow finds a type for many mixtures, and changes values on the way: the time of day goes where a
date comes first, `True` becomes 1.0 beside a double, a naive time and one with a zone become the
same. Nobody would notice, so such columns are refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

import numpy as np

from duolog.errors import InvalidRows

DEEPEST: Final = 100
"""Objects and lists within one another: Arrow recurses, and a stack has an end."""

_KINDS: Final[tuple[tuple[str, tuple[type, ...]], ...]] = (
    ("boolean", (bool, np.bool_)),
    ("whole number", (int, np.integer)),
    ("double", (float, np.floating)),
    ("decimal", (Decimal,)),
    ("time with date", (datetime, np.datetime64)),
    ("date", (date,)),
    ("time of day", (time,)),
    ("duration", (timedelta, np.timedelta64)),
    ("text", (str,)),
    ("bytes", (bytes, bytearray, memoryview)),
    ("object", (dict,)),
    ("list", (list, tuple, np.ndarray)),
)
_HOLDERS: Final = (dict, list, tuple)
_TOGETHER: Final = (
    frozenset({"whole number", "double"}),
    frozenset({"object", "list"}),  # an object may be given as pairs
)


def check_alike(table: str, name: str, column: Sequence[Any], *, is_key: bool) -> None:
    """Refuse a column whose values Arrow would change to make them one type."""
    types = {type(value) for value in column} - {type(None)}
    kinds = {_kind_of(each) for each in types}
    if len(kinds) > 1 and (is_key or kinds not in _TOGETHER):
        raise _mixed(table, name, sorted(kinds))
    if "time with date" in kinds:
        zoned = {value.tzinfo is not None for value in column if isinstance(value, datetime)}
        if len(zoned) > 1:
            raise _mixed(table, name, ["times with a zone", "times without one"])
    if kinds & {"object", "list"}:
        for value in column:
            _check_depth(table, name, value)


def _kind_of(kind: type) -> str:
    return next((word for word, kinds in _KINDS if issubclass(kind, kinds)), kind.__name__)


def _check_depth(table: str, name: str, value: Any) -> None:
    """Also of what holds itself, which has no end."""
    level = [value] if isinstance(value, _HOLDERS) else []
    for _ in range(DEEPEST):
        held = (
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, _HOLDERS)
        )
        level = list({id(inner): inner for inner in held}.values())
        if not level:
            return
    raise InvalidRows(
        f"Column '{name}' of the rows for table '{table}' has objects or lists more than {DEEPEST} "
        "deep within one another. Give what is so deep as text."
    )


def _mixed(table: str, name: str, kinds: Sequence[str]) -> InvalidRows:
    return InvalidRows(
        f"Column '{name}' of the rows for table '{table}' cannot be made one type: it has "
        f"{' and '.join(kinds)}. Give all its values the same type."
    )
