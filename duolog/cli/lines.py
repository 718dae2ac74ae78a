"""Lines of stdin in bunches: as many as are there now, so that nobody waits for the next one."""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedReader

from duolog.errors import RecordTooLarge

MAX_LINES = 5000
_READ_BYTES = 1 << 20


def bunches(source: BufferedReader, *, longest_line_bytes: int) -> Iterator[list[bytes]]:
    """All lines, without their ends. A last line without an end counts."""
    waiting: list[bytes] = []  # pieces of a line whose end is still to come
    waiting_bytes = number = 0
    while chunk := source.read1(_READ_BYTES):
        whole, end, rest = chunk.rpartition(b"\n")
        if end:
            lines = b"".join((*waiting, whole)).split(b"\n")
            waiting, waiting_bytes = [], 0
            number += len(lines)
            for first in range(0, len(lines), MAX_LINES):
                yield lines[first : first + MAX_LINES]
        waiting.append(rest)
        waiting_bytes += len(rest)
        if waiting_bytes > longest_line_bytes:
            raise RecordTooLarge(
                f"Line {number + 1:,} is longer than {longest_line_bytes:,} bytes, more than any "
                "record may take. Is the input made of lines?"
            )
    if waiting_bytes:
        yield [b"".join(waiting)]
