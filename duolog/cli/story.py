"""What the demo tells: steps, what happens in them, and claims with the outcome of their check."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table

from duolog import output

_INDENT = 3


class Story:
    """Tells it as it goes. With JSON, the claims alone, one object each."""

    def __init__(self, *, as_json: bool) -> None:
        self._as_json = as_json
        self._step = ""
        self._steps = 0
        self.failed = False

    def begin(self, title: str) -> None:
        self._print(output.styled(title, "bold"))

    def step(self, title: str) -> None:
        self._step = title
        self._steps += 1
        self._print("")
        number = output.styled(f"{self._steps}  ", "bold cyan")
        self._print(number.append(output.styled(title, "bold")))

    def tell(self, text: str) -> None:
        self._print(Padding(output.styled(text, "dim"), (0, 0, 0, _INDENT), expand=False))

    def show(self, table: Table) -> None:
        self._print(Padding(table, (0, 0, 0, _INDENT), expand=False))

    def check(self, claim: str, *, holds: bool) -> None:
        """Say whether this was found to be so."""
        self.failed = self.failed or not holds
        if self._as_json:
            output.json_line({"step": self._step, "claim": claim, "holds": holds})
            output.flush()
            return
        line = Table.grid(padding=(0, 1))
        line.add_column(no_wrap=True)
        line.add_column()
        sign = output.styled("✓", "bold green") if holds else output.styled("✗ NOT SO:", "bold red")
        line.add_row(sign, output.styled(claim))
        self.show(line)

    def end(self, lines: Sequence[str]) -> None:
        """The last words; commands are not wrapped, so that they can be copied."""
        if not self._as_json:
            output.blank()
            output.line(*lines)

    def _print(self, shown: RenderableType) -> None:
        if not self._as_json:
            output.show(shown)
