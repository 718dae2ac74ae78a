"""Records that no topic takes, each wrong in one way."""

from __future__ import annotations

from typing import Any

import numpy as np

from duolog.log.model import Op, PayloadMode
from duolog.log.record_check import MAX_HEADERS, MAX_NAME_CHARACTERS
from duolog.log.timestamps import LATEST_TIME_MS

HALF = "\ud800"
"""Half of a surrogate pair: JSON can say it, UTF-8 cannot."""


class Text(str):
    pass


class Bytes(bytes):
    def __len__(self) -> int:
        return 0


POISONS: dict[str, dict[str, Any]] = {
    "value is text": {"value": "text"},
    "value is a bytearray": {"value": bytearray(b"x")},
    "value is a memoryview": {"value": memoryview(b"x")},
    "value lies about its length": {"value": Bytes(b"x")},
    "key is text": {"key": "text"},
    "key is a number": {"key": 1},
    "ts is a float": {"ts_ms": 1.5},
    "ts is not a number": {"ts_ms": float("nan")},
    "ts is a bool": {"ts_ms": True},
    "ts is of numpy": {"ts_ms": np.int64(5)},
    "ts is text": {"ts_ms": "5"},
    "ts is an Op": {"ts_ms": Op.INSERT},
    "ts is before 1970": {"ts_ms": -1},
    "ts is beyond what is stored": {"ts_ms": LATEST_TIME_MS + 1},
    "ts has thousands of digits": {"ts_ms": 10**5000},
    "op is an unknown number": {"op": 9},
    "op does not fit a byte": {"op": 300},
    "op is a number that an Op has": {"op": 1},
    "op is none": {"op": None},
    "op is a bool": {"op": True},
    "op is another enum": {"op": PayloadMode.FULL},
    "payload is an unknown number": {"payload": 9},
    "payload is an Op": {"payload": Op.INSERT},
    "table is a number": {"table": 5},
    "table is bytes": {"table": b"t"},
    "table has half of a surrogate pair": {"table": f"orders{HALF}"},
    "table is of a kind of text": {"table": Text("t")},
    "table is very long": {"table": "t" * (MAX_NAME_CHARACTERS + 1)},
    "headers are none": {"headers": None},
    "headers are a dict": {"headers": {"ab": b"x"}},
    "headers are text": {"headers": "ab"},
    "headers are a generator": {"headers": (pair for pair in [("a", b"")])},
    "headers are an array": {"headers": np.array([1, 2])},
    "a header is text": {"headers": ("ab",)},
    "a header has three parts": {"headers": (("a", b"", 1),)},
    "a header has no name": {"headers": ((None, b""),)},
    "a header's name is bytes": {"headers": ((b"a", b""),)},
    "a header's name has half of a surrogate pair": {"headers": ((HALF, b""),)},
    "a header's name is very long": {"headers": (("n" * (MAX_NAME_CHARACTERS + 1), b""),)},
    "a header's value is text": {"headers": (("a", "b"),)},
    "too many headers": {"headers": (("a", b""),) * (MAX_HEADERS + 1)},
    "partition is a float": {"partition": 0.0},
    "partition is a bool": {"partition": False},
    "partition is of numpy": {"partition": np.int32(0)},
    "partition is text": {"partition": "0"},
}
