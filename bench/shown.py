"""Reports as tables: on a terminal of 80 columns, and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from bench.figures import Report

_COLUMNS = ("", "measured", "reference", "ratio", "target", "")
_STYLES = {"yes": "green", "no": "bold red", "": ""}


def print_report(console: Console, report: Report) -> None:
    """One benchmark's table, with what was measured above it and its reference below."""
    table = Table(box=box.SIMPLE_HEAD, width=min(console.width, 80), pad_edge=False, expand=True)
    table.add_column("", ratio=1)
    for heading in _COLUMNS[1:]:
        table.add_column(heading, justify="right", no_wrap=True)
    for figure in report.figures:
        table.add_row(
            figure.name,
            figure.measured_text,
            figure.reference_text,
            figure.ratio_text,
            figure.target_text,
            Text(figure.reached_text, style=_STYLES[figure.reached_text]),
        )
    console.print(Text.assemble((report.benchmark, "bold"), "  ", report.what))
    console.print(table, end="")
    if report.reference:
        console.print(Text(f"reference: {report.reference}", style="dim"))
    console.print()


def markdown(machine: Mapping[str, str], reports: Sequence[tuple[str, Report]]) -> str:
    """All reports, each with the time it was made, as Markdown."""
    return "\n".join(_markdown_lines(machine, reports))


def _markdown_lines(
    machine: Mapping[str, str], reports: Sequence[tuple[str, Report]]
) -> Iterator[str]:
    yield "| | |"
    yield "|---|---|"
    for name, value in machine.items():
        yield f"| {name} | {value} |"
    for at, report in reports:
        yield ""
        yield f"### {report.benchmark}"
        yield ""
        yield f"{report.what} Measured {at}."
        yield ""
        yield "| | measured | reference | ratio | target | reached |"
        yield "|---|---:|---:|---:|---:|---|"
        for figure in report.figures:
            cells = (
                figure.name,
                figure.measured_text,
                figure.reference_text,
                figure.ratio_text,
                figure.target_text,
                figure.reached_text,
            )
            yield f"| {' | '.join(cells)} |"
        if report.reference:
            yield ""
            yield f"Reference: {report.reference}"
