"""A filter's words, read one after the other; remembers where each node of the tree stands."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar

from duolog.errors import InvalidFilter
from duolog.log.routing.filter.tree import MAX_DEPTH, Node, When, children
from duolog.log.routing.filter.words import Word, split

if TYPE_CHECKING:
    from collections.abc import Iterator

_Placed = TypeVar("_Placed", bound=Node | When)


class Level(IntEnum):
    """How tightly a word holds what stands beside it."""

    NONE = 0
    OR = 1
    AND = 2
    NOT = 3
    COMPARISON = 4
    SUM = 5
    PRODUCT = 6
    SIGN = 7
    CAST = 8


class Reader:
    """Where the parser is in a text, and which places its nodes came from."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._words = split(text)
        self._at = 0
        # By identity: equal nodes stand in several places. The node is kept, so that ids stay its.
        self._places: dict[int, tuple[Node | When, int, int]] = {}

    @property
    def next(self) -> Word:
        return self._words[self._at]

    @property
    def after_next(self) -> Word:
        return self._words[min(self._at + 1, len(self._words) - 1)]

    @property
    def is_enclosed(self) -> bool:
        """Whether one pair of parentheses encloses all that follows, or one is never closed."""
        depth = 0
        for at in range(self._at, len(self._words) - 1):
            depth += {"(": 1, ")": -1}.get(self._words[at].keyword, 0)
            if depth <= 0:
                return at > self._at and at == len(self._words) - 2
        return depth > 0

    def take(self) -> Word:
        word = self.next
        self._at = min(self._at + 1, len(self._words) - 1)
        return word

    def accept(self, keyword: str) -> Word | None:
        return self.take() if self.next.keyword == keyword else None

    def expect(self, keyword: str) -> Word:
        if self.next.keyword != keyword:
            raise self.error(self.next, f"Expected {keyword} here, found {shown(self.next)}.")
        return self.take()

    def commas(self) -> Iterator[None]:
        """Once for each part of a list, and over the commas between them."""
        yield
        while self.accept(","):
            yield

    def error(self, word: Word, reason: str) -> InvalidFilter:
        """A mistake at a word, to be raised."""
        return InvalidFilter(reason, text=self.text, position=word.position)

    def place(self, node: _Placed, word: Word) -> _Placed:
        """Remember that `node` stands at `word`, once what is below it has been placed."""
        height = 1 + max((self._height(child) for child in children(node)), default=0)
        if height > MAX_DEPTH:
            raise self.too_deep(word)
        self._places[id(node)] = (node, word.position, height)
        return node

    def place_of(self, node: Node | When) -> int:
        return self._places[id(node)][1]

    def too_deep(self, word: Word) -> InvalidFilter:
        return self.error(
            word, f"More than {MAX_DEPTH} parts within one another: split the filter into routes."
        )

    def _height(self, node: Node | When) -> int:
        # A branch of a CASE is no level of its own: the stored form counts nodes.
        placed, _, height = self._places[id(node)]
        return height - 1 if isinstance(placed, When) else height


def shown(word: Word) -> str:
    return "the end" if word.kind == "end" else f"`{word.text}`"
