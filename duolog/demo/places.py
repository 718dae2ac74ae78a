"""Where the demo keeps things: all of it below one folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

TABLE: Final = "shop.orders"
PARTITIONS: Final = 6


@dataclass(frozen=True, slots=True)
class Places:
    """The parts of a demo's folder; `suffix` keeps its names apart in a Kafka that others use."""

    folder: Path
    suffix: str = ""

    @property
    def topic(self) -> str:
        return f"orders{self.suffix}"

    @property
    def group(self) -> str:
        return f"billing{self.suffix}"

    @property
    def log(self) -> Path:
        return self.folder / "shop.log"

    @property
    def kafka(self) -> Path:
        return self.folder / "kafka"

    @property
    def table(self) -> Path:
        """The Delta table."""
        return self.folder / "orders"

    @property
    def checkpoint(self) -> Path:
        return self.folder / "orders.checkpoint"

    @property
    def spark(self) -> Path:
        """What Spark makes for itself."""
        return self.folder / "spark"

    @property
    def progress(self) -> Path:
        """What the shop says of itself, a line of JSON at a time."""
        return self.folder / "shop.progress"

    @property
    def final_rows(self) -> Path:
        """The table's rows when the shop closed."""
        return self.folder / "orders.jsonl"

    def ledger(self, member: str) -> Path:
        return self.folder / "done" / member

    def said_by(self, child: str) -> Path:
        """What a process prints."""
        return self.folder / "said" / child
