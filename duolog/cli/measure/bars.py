"""Measured values side by side, as bars of 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from duolog import output

_NAME_WIDTH: Final = 34
_BAR_WIDTH: Final = 26
_PARTS: Final = " ▏▎▍▌▋▊▉█"
_PLAIN_PARTS: Final = " #"


@dataclass(frozen=True, slots=True)
class Measured:
    """One value. `is_ours`: what Duolog does; the others are what it is to be compared with."""

    name: str
    value: float
    is_ours: bool = True


@dataclass(frozen=True, slots=True)
class Measurement:
    """Values of one unit."""

    name: str
    what: str
    unit: str
    values: tuple[Measured, ...]
    less_is_better: bool = False

    def fields(self) -> Iterator[dict[str, Any]]:
        """An object for each value, as JSON says it."""
        for each in self.values:
            fields = asdict(each)
            del fields["is_ours"]
            yield {"benchmark": self.name, **fields, "unit": self.unit}


def bar(share: float, width: int, *, plain: bool = False) -> str:
    """A bar that fills this share of its width; something is seen of whatever is above nothing."""
    parts = _PLAIN_PARTS if plain else _PARTS
    steps = len(parts) - 1
    filled = round(min(1.0, max(0.0, share)) * width * steps)
    if share > 0:
        filled = max(1, filled)
    whole, rest = divmod(filled, steps)
    return parts[-1] * whole + (parts[rest] if rest else "")


def short(value: float) -> str:
    """12,345 or 12.3 or 1.23"""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def lines(values: Sequence[Measured], unit: str, *, plain: bool) -> Iterator[tuple[str, str, str]]:
    """Name, bar and figure of each; the longest bar is the highest value. Pure."""
    highest = max((each.value for each in values), default=0.0)
    for each in values:
        share = each.value / highest if highest else 0.0
        yield each.name, bar(share, _BAR_WIDTH, plain=plain), f"{short(each.value)} {unit}"


def show(measured: Measurement) -> None:
    """Its name and what was done, and a bar for each value."""
    from rich.table import Table

    plain = not output.console().encoding.lower().startswith("utf")
    hint = "; shorter is better" if measured.less_is_better else ""
    title = output.styled(measured.name, "bold")
    output.show(title.append(f"  {measured.what}{hint}", "not bold"))
    table = Table.grid(padding=(0, 1))
    table.add_column(width=_NAME_WIDTH, no_wrap=True)
    table.add_column(width=_BAR_WIDTH, no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    for each, (name, drawn, figure) in zip(
        measured.values, lines(measured.values, measured.unit, plain=plain), strict=True
    ):
        table.add_row(f"  {name}", output.styled(drawn, "green" if each.is_ours else "dim"), figure)
    output.show(table)
    output.blank()
