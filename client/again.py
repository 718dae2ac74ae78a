"""Records that were refused and wait to be handed out again. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from duolog.client.model import Piece, Place


class Again:
    """By place and offset; each piece is one record."""

    def __init__(self) -> None:
        self._waiting: dict[Place, dict[int, tuple[float, Piece]]] = {}

    def add(self, piece: Piece, due: float) -> None:
        self._waiting.setdefault(piece.place, {})[piece.start] = (due, piece)

    def remove(self, place: Place, offset: int) -> None:
        waiting = self._waiting.get(place, {})
        waiting.pop(offset, None)
        if not waiting:
            self._waiting.pop(place, None)

    def drop(self, place: Place, *, before: int | None = None) -> None:
        """Forget all of a place, or what lies before an offset."""
        for offset in self.offsets(place):
            if before is None or offset < before:
                self.remove(place, offset)

    @property
    def places(self) -> set[Place]:
        return set(self._waiting)

    def offsets(self, place: Place) -> list[int]:
        return sorted(self._waiting.get(place, ()))

    def pieces(self) -> Iterator[Piece]:
        return (piece for waiting in self._waiting.values() for _, piece in waiting.values())

    def due(self, now: float) -> list[Piece]:
        """In order of offsets; none before one of its partition that is not due yet."""
        found: list[Piece] = []
        for waiting in self._waiting.values():
            for offset in sorted(waiting):
                due, piece = waiting[offset]
                if due > now:
                    break
                found.append(piece)
        return found

    def next_due(self) -> float | None:
        """When the next one is due."""
        firsts = (waiting[min(waiting)][0] for waiting in self._waiting.values())
        return min(firsts, default=None)
