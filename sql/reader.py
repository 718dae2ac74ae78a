"""The words of one statement, read one after the other."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from duolog.errors import InvalidSql
from duolog.sql.words import Word

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class Reader:
    """Where the parser is in a statement. `text` is all that was sent, for messages."""

    def __init__(self, text: str, words: Sequence[Word]) -> None:
        self.text = text
        self._words = words
        self._at = 0

    @property
    def next(self) -> Word:
        return self._words[self._at]

    @property
    def after_next(self) -> Word:
        return self._words[min(self._at + 1, len(self._words) - 1)]

    @property
    def last(self) -> Word:
        """The word that was taken last."""
        return self._words[max(0, self._at - 1)]

    def take(self) -> Word:
        word = self.next
        self._at = min(self._at + 1, len(self._words) - 1)
        return word

    def accept(self, *keywords: str) -> Word | None:
        """Take these words if all of them follow; the first of them."""
        words = self._words[self._at : self._at + len(keywords)]
        if [word.keyword for word in words] != list(keywords):
            return None
        self._at += len(keywords)
        return words[0]

    def expect(self, *keywords: str) -> Word:
        """Take these words, in this order; the first of them."""
        first = self.next
        for keyword in keywords:
            if not self.accept(keyword):
                raise self.expected(keyword)
        return first

    def choice(self, keywords: Iterable[str]) -> str:
        """Take one of these words."""
        known = list(keywords)
        if self.next.keyword not in known:
            raise self.expected(*known)
        return self.take().keyword

    def commas(self) -> Iterator[None]:
        """Once for each part of a list, and over the commas between them."""
        yield
        while self.accept(","):
            yield

    def expected(self, *keywords: str) -> InvalidSql:
        """None of these words is what comes next."""
        word = self.next
        near = get_close_matches(word.keyword, keywords, n=1) if word.keyword.isalpha() else []
        hint = f" Did you mean {near[0]}?" if near else ""
        return self.error(word, f"Expected {either(keywords)} here, found {shown(word)}.{hint}")

    def error(self, word: Word, reason: str) -> InvalidSql:
        """A mistake at a word, to be raised."""
        return InvalidSql(reason, text=self.text, position=word.position)


def shown(word: Word) -> str:
    """A word in a message."""
    return "the end" if word.kind == "end" else f"`{word.text}`"


def either(words: Sequence[str]) -> str:
    """a, b or c"""
    *before, last = words
    return f"{', '.join(before)} or {last}" if before else last
