"""The live table. At a terminal it is drawn again and again; elsewhere a line now and then."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from duolog import output
from duolog.demo.sight import MemberSeen, Sight

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

_LINE_EVERY_SECONDS: Final = 5.0
_BAR: Final = 20


class Screen:
    """Shows what was seen last. `silent` shows nothing."""

    def __init__(self, *, silent: bool) -> None:
        self._live: Live | None = None
        self._lines = not silent and not can_be_redrawn()
        self._silent = silent
        self._line_due_at = 0.0

    def __enter__(self) -> Self:
        if not self._silent and not self._lines:
            from rich.live import Live

            self._live = Live(console=output.console(), refresh_per_second=8, transient=False)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, sight: Sight, doing: str) -> None:
        if self._live is not None:
            self._live.update(drawn(sight, doing))
        elif self._lines and time.monotonic() >= self._line_due_at:
            self._line_due_at = time.monotonic() + _LINE_EVERY_SECONDS
            output.line(f"   {line_of(sight)}")
            output.flush()


@contextmanager
def waiting(what: str, *, silent: bool) -> Iterator[None]:
    """Show at a terminal what is waited for, and for how long already; gone when it is there."""
    if silent or not can_be_redrawn():
        yield
        return
    from rich.progress import Progress as Bars
    from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Bars(
        TextColumn("  ", markup=False), *columns, console=output.console(), transient=True
    ) as shown:
        shown.add_task(what, total=None)
        yield


def can_be_redrawn() -> bool:
    """Whether stdout is a terminal that can go back to a line above."""
    return output.is_terminal() and os.environ.get("TERM") not in {"dumb", "unknown"}


def line_of(sight: Sight) -> str:
    """All of it in less than 80 columns."""
    return (
        f"{sight.seconds:3.0f} s  written {sight.written:,}  mirrored {sight.mirrored:,}  "
        f"acked {sight.native_position:,} | {sight.kafka_position:,}  lag {sight.lag:,}"
    )


def drawn(sight: Sight, doing: str) -> Table:
    """The table of one look."""
    from rich.table import Table
    from rich.text import Text

    shown = Table.grid(padding=(0, 1))
    shown.add_column(min_width=18, no_wrap=True)
    shown.add_column(min_width=9, justify="right", no_wrap=True)
    shown.add_column(no_wrap=True)
    shown.add_row(
        output.styled(f"   {sight.seconds:.0f} s", "bold"), "", output.styled(doing, "yellow")
    )
    versions = "version" if sight.versions == 1 else "versions"
    source = f"rows changed, {sight.versions:,} {versions} of the table"
    shown.add_row("   shop.orders", f"{sight.changed:,}", output.styled(source, "dim"))
    for name, count, what in (
        ("   log", sight.written, "events written"),
        ("   Kafka", sight.mirrored, "of them mirrored"),
        ("   done, natively", sight.native_position, f"lag {sight.lag:,}"),
        ("   done, in Kafka", sight.kafka_position, "as Kafka has the group"),
    ):
        bar = Text.assemble(_bar(count, sight.written), (f" {what}", "dim"))
        shown.add_row(name, f"{count:,}", bar)
    for member in sight.members:
        shown.add_row(*_member(member))
    return shown


def _bar(count: int, of: int) -> tuple[str, str]:
    full = _BAR * count // of if of else 0
    return "━" * full + " " * (_BAR - full), "green"


def _member(member: MemberSeen) -> tuple[str | Text, str, Text]:
    if member.is_killed:
        return (
            output.styled(f"     {member.name}", "red"),
            f"{member.done:,}",
            output.styled("killed", "red"),
        )
    did = "done" if member.done else ""
    if member.partitions:
        did += f", last in partitions {', '.join(map(str, member.partitions))}"
    return f"     {member.name}", f"{member.done:,}", output.styled(did, "dim")
