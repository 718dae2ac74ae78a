"""A query as DataFusion takes it: the column `offset` is put into quotes.

In `SELECT partition, offset FROM t` its parser would see the clause OFFSET. Behind the clause comes
a number; behind the column never does.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from duolog.errors import InvalidSql
from duolog.sql.words import split

MAX_WORDS = 1000
"""Numbers, texts and commas apart. DataFusion's planning takes the square of it, or worse: 5 s for
a thousand additions, more than a minute for 20,000; and it cannot be stopped."""

_BEFORE_NUMBERS = ("(", "$")


@dataclass(frozen=True, slots=True)
class Taken:
    """The query, and where in it a quote was put that nobody has typed."""

    text: str
    quotes: tuple[int, ...] = ()

    def typed_position(self, line: int, column: int) -> int:
        """A place, which is counted from 1, as a position in what was typed."""
        before = self.text.split("\n")[: line - 1]
        place = min(sum(len(each) + 1 for each in before) + column - 1, len(self.text))
        return place - sum(quote < place for quote in self.quotes)


def taken(text: str) -> Taken:
    """The query that was typed as `text`."""
    quotes: list[int] = []
    pieces: list[str] = []
    done = 0
    words = split(text)[0]
    counted = [word for word in words if word.kind not in ("number", "text") and word.text != ","]
    if len(counted) > MAX_WORDS:
        raise InvalidSql(
            f"A query may have {MAX_WORDS:,} words, this one has {len(counted):,} (numbers, texts "
            "and commas do not count). Many values go into one list: x IN (1, 2, …)."
        )
    for word, following in pairwise(words):
        is_clause = following.kind == "number" or following.text in _BEFORE_NUMBERS
        if word.keyword == "OFFSET" and not is_clause:
            pieces.append(f'{text[done : word.position]}"{word.text.lower()}"')
            done = word.end
            inserted = len(quotes)
            quotes += [word.position + inserted, word.end + inserted + 1]
    return Taken("".join((*pieces, text[done:])), tuple(quotes))
