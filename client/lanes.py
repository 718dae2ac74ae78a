"""Who publishes under which name, and with which sequence. Pure.

A writer has one request under way at most: the host remembers its last 1,024 records, so what is
sent again must not lie further back. What is published meanwhile goes by another writer.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field


@dataclass(slots=True)
class Lane:
    """One writer and the sequence of its next record."""

    writer: str = field(default_factory=lambda: f"client-{uuid.uuid4()}")
    next_sequence: int = 0
    is_named: bool = False
    doubted_from: int | None = None
    """In order: nobody knows whether what was sent with this sequence was written."""

    def go_on_behind(self, last_sequence: int | None) -> None:
        """The host knows how far the writer has come, or does not know the writer."""
        if self.doubted_from is not None:
            self.next_sequence = self.doubted_from if last_sequence is None else last_sequence + 1
            self.doubted_from = None

    def begin_anew(self) -> None:
        """Nobody knows which sequences were used: another writer has none. A name is kept, so
        that the same may be sent again by it.
        """
        if not self.is_named:
            self.writer, self.next_sequence = Lane().writer, 0


class Lanes:
    """The lanes of one publisher that nobody uses now.

    The last one that became free goes first, so that there are no more than were used at once: the
    host keeps what it remembers of each.
    """

    def __init__(self, named: Lane | None = None) -> None:
        self._free: list[Lane] = []
        if named is not None:
            self._free.append(named)

    def take(self) -> Lane:
        return self._free.pop() if self._free else Lane()

    def give_back(self, lane: Lane) -> None:
        self._free.append(lane)
