"""The attacks as a table: what is tried, how, and what comes of it.

`python -m tests.drills.edge.table` prints the appendix of docs/security.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.drills.edge.hosting import Edge

Run = Callable[["Edge"], None]

CLASSES: Final = ("authentication", "limits", "isolation", "escape")
HEADING: Final = "## Appendix: attacks"


@dataclass(frozen=True)
class Attack:
    """One row. `run` raises AssertionError where the host does not do what `result` says."""

    kind: str
    name: str
    how: str
    result: str
    run: Run

    @property
    def row(self) -> str:
        return f"| {self.name} | {self.how} | {self.result} |"


ATTACKS: Final[dict[str, Attack]] = {}


def attack(kind: str, *, how: str, result: str) -> Callable[[Run], Run]:
    """Put a function into the table. Its name is the row's."""

    def put(run: Run) -> Run:
        name = run.__name__.replace("_", " ")
        assert kind in CLASSES, kind
        assert name not in ATTACKS, name
        ATTACKS[name] = Attack(kind, name, how, result, run)
        return run

    return put


def load() -> dict[str, Attack]:
    """All attacks by their names."""
    for kind in CLASSES:
        import_module(f"tests.drills.edge.{kind}")
    return ATTACKS


def tables() -> str:
    """All of them as the document shows them, below its heading."""
    parts = []
    for kind in CLASSES:
        rows = [each.row for each in load().values() if each.kind == kind]
        parts.append("\n".join([f"### {kind.title()}", "", *_HEAD, *rows]))
    return "\n\n".join(parts)


_HEAD: Final = ("| attack | how | result |", "|---|---|---|")


if __name__ == "__main__":
    from tests.drills.edge.table import tables as shown  # the module that the attacks fill

    print(shown())
