"""Looks at the patterns of LIKE in a filter that is made: some take too long on large texts.

Filters that are stored keep theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from duolog.log.routing.filter import strings
from duolog.log.routing.filter.bind import bind_value
from duolog.log.routing.filter.mistake import Mistake
from duolog.log.routing.filter.steps import Refusal
from duolog.log.routing.filter.tree import Like, Node, children

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duolog.log.routing.filter.tree import When


_MOST_WILDCARDS: Final = 128  # of all patterns in a filter


def check_patterns(node: Node | When) -> None:
    """Raises Mistake."""
    wildcards = 0
    for like, pattern in _patterns(node):
        try:
            strings.check_like(pattern, like.escape, ignore_case=like.ignore_case)
        except Refusal as refusal:
            raise Mistake(like.pattern, str(refusal)) from None
        wildcards += pattern.count("%") + pattern.count("_")
        if wildcards > _MOST_WILDCARDS:
            raise Mistake(
                like.pattern,
                f"The patterns of LIKE in a filter have at most {_MOST_WILDCARDS} wildcards "
                "together. Make several routes, or compare with =.",
            )


def _patterns(node: Node | When) -> Iterator[tuple[Like, str]]:
    """What is no text is refused where the filter is bound."""
    if isinstance(node, Like):
        constant = bind_value(node.pattern, None).constant
        pattern = None if constant is None else constant.as_py()
        if isinstance(pattern, str):
            yield node, pattern
    for child in children(node):
        yield from _patterns(child)
