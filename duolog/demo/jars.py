"""What the demo fetches once: a Kafka, and Delta for Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from duolog import output
from duolog.bridge.kafka.local import kafka_jars
from duolog.demo.screen import can_be_redrawn
from duolog.jars import Progress, fetch_jars

_BAR: Final = 10
_BESIDE_THE_TEXT: Final = _BAR + len(" 0:00:00 ") + 1  # no terminal scrolls for its last column
SPARK: Final = "4.1"  # what this Delta is made for
_DELTA: Final = (
    ("io.delta", "delta-spark_4.1_2.13", "4.1.0"),
    ("io.delta", "delta-storage", "4.1.0"),
)


def all_jars(*, silent: bool, with_kafka: bool) -> list[Path]:
    """Delta's jars; Kafka's are only made sure of."""
    with _bar(silent=silent) as progress:
        if with_kafka:
            kafka_jars(progress)
        return [
            jar
            for named in _DELTA
            for jar in fetch_jars(*named, transitive=False, progress=progress)
        ]


@contextmanager
def _bar(*, silent: bool) -> Iterator[Progress | None]:
    """A bar at a terminal for as long as something is fetched; elsewhere a line a library."""
    if silent:
        yield None
        return
    if not can_be_redrawn():
        told: set[str] = set()

        def tell(text: str) -> None:
            title = text.partition(":")[0]
            if title not in told:
                told.add(title)
                output.line(f"{title}, once.")
                output.flush()

        yield tell
        return
    from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (BarColumn(_BAR), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Bars(*columns, console=output.console(), transient=True) as bars:
        task: TaskID | None = None

        def show(text: str) -> None:
            nonlocal task
            if task is None:  # only once there is something to show
                task = bars.add_task("", total=None)
            # Whole columns: Rich would make all three narrower, and the time unreadable.
            bars.update(task, description=text[: bars.console.width - _BESIDE_THE_TEXT])

        yield show
