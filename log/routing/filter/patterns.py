"""Looks at the patterns of LIKE in a filter that is made: some take too long on large texts.

Filters that are stored keep theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from duolog.log.routing.filter import strings
from duolog.log.routing.filter.bind import bind_value
from duolog.log.routing.filter.mistake import Mistake
from duolog.log.routing.filter.steps import Refusal
from duolog.log.routing.filter.tree import Like, Node, children

if TYPE_CHECKING:
    from duolog.log.routing.filter.tree import When


def check_patterns(node: Node | When) -> None:
    """Raises Mistake."""
    if isinstance(node, Like):
        _check(node)
    for child in children(node):
        check_patterns(child)


def _check(node: Like) -> None:
    constant = bind_value(node.pattern, None).constant
    pattern = None if constant is None else constant.as_py()
    if not isinstance(pattern, str):  # refused where the filter is bound
        return
    try:
        strings.check_like(pattern, node.escape, ignore_case=node.ignore_case)
    except Refusal as refusal:
        raise Mistake(node.pattern, str(refusal)) from None
