"""One body, byte by byte: slow, exact, and able to say what is wrong.

Columns are read without asking of each row whether it is sound. When something does not add up,
the rows are read again in this way until the first bad one is met. It also finds its way through
arrays that only few rows have so many items in.
"""

from __future__ import annotations

from typing import Final

from duolog.avro.decode.page import Suspect

MAX_EMPTY_ITEMS: Final = 1 << 20
"""Of arrays in one batch whose items take no bytes: their number says nothing of the length."""


_WRONG_SCHEMA: Final = (
    "These are not bytes of the schema that they are read with: find out which schema they were "
    "written with."
)
WRONG_READER: Final = "The reader's schema has no place for it: read it with the writer's."


class Fault(Suspect):
    """What is wrong with a body, what to do, and the field's path, outermost first."""

    def __init__(self, reason: str, way_out: str = _WRONG_SCHEMA) -> None:
        self.reason = reason
        self.way_out = way_out
        self.path: list[str] = []
        super().__init__(reason)

    def inside(self, name: str) -> Fault:
        """The same, seen from the type around it."""
        self.path.insert(0, name)
        return self

    @property
    def place(self) -> str:
        """The path as a person writes it: order.items[3].price."""
        return "".join(
            step if step.startswith("[") or not index else f".{step}"
            for index, step in enumerate(self.path)
        )


class Scan:
    """A position in a body that ends at `end`. Only a strict scan looks at every value."""

    __slots__ = ("at", "content", "empty_items", "end", "is_strict")

    def __init__(
        self, content: bytes, at: int, end: int, *, is_strict: bool = False, empty_items: int = 0
    ) -> None:
        self.content = content
        self.at = at
        self.end = end
        self.is_strict = is_strict
        self.empty_items = empty_items

    def skip(self, size: int) -> int:
        """Where these bytes begin."""
        begin = self.at
        if size > self.end - begin:
            raise Fault(f"it takes {size} bytes, but only {self.end - begin} are left")
        self.at = begin + size
        return begin

    def raw(self, size: int) -> bytes:
        begin = self.skip(size)
        return self.content[begin : begin + size]

    def long(self) -> int:
        """A zigzag varint of at most 64 bits."""
        content, at, end = self.content, self.at, self.end
        if at < end and content[at] < 0x80:
            self.at = at + 1
            return (content[at] >> 1) ^ -(content[at] & 1)
        bits = 0
        for index in range(10):
            if at + index >= end:
                raise Fault("the body ends inside a number")
            byte = content[at + index]
            bits |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                if bits >> 64:
                    break
                self.at = at + index + 1
                return (bits >> 1) ^ -(bits & 1)
        raise Fault("a number has more than 64 bits")

    def length(self) -> int:
        """A length in bytes that the body still has room for."""
        size = self.long()
        if size < 0:
            raise Fault(f"its length is given as {size}")
        if size > self.end - self.at:
            raise Fault(
                f"its length is given as {size} bytes, but only {self.end - self.at} are left"
            )
        return size
