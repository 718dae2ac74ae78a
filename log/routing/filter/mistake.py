"""What is wrong with a part of a filter, before it is known whom to tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duolog.log.routing.filter.tree import Node


class Mistake(Exception):
    """Becomes InvalidFilter where a route is made and InvalidRows where it is used."""

    def __init__(self, node: Node, reason: str) -> None:
        self.node = node
        self.reason = reason
        super().__init__(reason)
