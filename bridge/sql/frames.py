"""What goes over the socket between a host and a process that answers queries.

    u32 length | u8 kind | so many bytes: JSON, or a piece of an answer, or encoded batches

The process says READY once. The host sends a QUERY; the process CALLs for what it has to read, one
at a time, and the host answers each; then come the PIECEs of the answer and DONE, or FAILED.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from duolog.errors import HostFailed

HEAD: Final = struct.Struct(">IB")


class Kind(IntEnum):
    READY = 1
    QUERY = 2
    CALL = 3
    RESULT = 4  # of a call, as JSON
    BATCHES = 5  # of a call to fetch
    REFUSED = 6  # a call: its error
    PIECE = 7
    DONE = 8
    FAILED = 9  # a query: its error


@dataclass(frozen=True, slots=True)
class Frame:
    kind: Kind
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)


@dataclass(frozen=True, slots=True)
class Query:
    """One SELECT. `text` is all that was sent, of which it is a part: messages point into it."""

    select: str
    position: int
    text: str
    as_arrow: bool
    timeout_seconds: float
    pool_bytes: int
    max_rows: int
    max_answer_bytes: int


def head_of(head: bytes) -> tuple[Kind, int]:
    """The kind of a frame and the length of its content. Raises HostFailed."""
    length, number = HEAD.unpack(head)
    try:
        kind = Kind(number)
    except ValueError:
        raise HostFailed("The two sides of a query do not understand one another.") from None
    return kind, length


def framed(kind: Kind, content: Any = b"") -> bytes:
    """A frame of bytes, or of a value as JSON."""
    is_bytes = isinstance(content, bytes | memoryview)
    encoded = content if is_bytes else json.dumps(content).encode()
    return b"".join((HEAD.pack(len(encoded), kind), encoded))
