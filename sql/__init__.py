"""SQL over any log: the statements for topics and groups, and SELECT.

    with open_log("shop.log") as log:
        run(log, "CREATE TOPIC orders PARTITIONS 2")
        run(log, "SELECT count(*) FROM orders WHERE qty > 1").table()

`run` does one statement. `parse` makes plain statements of a text and `execute` does one of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duolog.sql.execution import execute, run
    from duolog.sql.grammar import parse
    from duolog.sql.result import SqlResult
    from duolog.sql.select.limits import QueryLimits

__all__ = ["QueryLimits", "SqlResult", "execute", "parse", "run"]

_ROOMS = {
    "QueryLimits": "select.limits",
    "SqlResult": "result",
    "execute": "execution",
    "parse": "grammar",
    "run": "execution",
}


def __getattr__(name: str) -> object:
    # Loaded when first asked for: whoever only parses needs no Arrow.
    if name not in _ROOMS:
        raise AttributeError(f"module 'duolog.sql' has no attribute '{name}'")
    return getattr(import_module(f"duolog.sql.{_ROOMS[name]}"), name)
