"""What the demo tells: steps, what happens in them, and claims with the outcome of their check."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from duolog.cli import output

_INDENT = 3


class Story:
    """Tells it as it goes. With JSON, the claims alone, one object each."""

    def __init__(self, *, as_json: bool) -> None:
        self._console: Console | None = None if as_json else output.console()
        self._step = ""
        self._steps = 0
        self.failed = False

    def begin(self, title: str) -> None:
        self._print(Text(title, style="bold"))

    def step(self, title: str) -> None:
        self._step = title
        self._steps += 1
        self._print(Text())
        self._print(Text.assemble((f"{self._steps}  ", "bold cyan"), (title, "bold")))

    def tell(self, text: str) -> None:
        self._print(Padding(Text(text, style="dim"), (0, 0, 0, _INDENT), expand=False))

    def show(self, table: Table) -> None:
        self._print(Padding(table, (0, 0, 0, _INDENT), expand=False))

    def check(self, claim: str, *, holds: bool) -> None:
        """Say whether this was found to be so."""
        self.failed = self.failed or not holds
        if self._console is None:
            output.json_line({"step": self._step, "claim": claim, "holds": holds})
            output.flush()
            return
        line = Table.grid(padding=(0, 1))
        line.add_column(no_wrap=True)
        line.add_column()
        sign = Text("✓", style="bold green") if holds else Text("✗ NOT SO:", style="bold red")
        line.add_row(sign, Text(claim))
        self.show(line)

    def end(self, lines: Sequence[str]) -> None:
        """The last words; commands are not wrapped, so that they can be copied."""
        if self._console is not None:
            self._console.print("")
            for line in lines:
                self._console.print(Text(line), soft_wrap=True)

    def _print(self, shown: Text | Padding) -> None:
        if self._console is not None:
            self._console.print(shown)
