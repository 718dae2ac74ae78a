"""How far many logs go: tables by simulation from the measured figures.

python -m bench.scaling              from the figures in docs/performance.md
python -m bench.scaling --measured   from those that `make bench` has kept on this machine
python -m bench.scaling --write      put the tables into docs/scaling.md
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from bench import results
from bench.figures import short
from bench.scaling_model import Costs, Figures, sustained, waits

ROOT = Path(__file__).parents[1]
PERFORMANCE = ROOT / "docs" / "performance.md"
PAGE = ROOT / "docs" / "scaling.md"
LOGS = (1, 2, 4, 8, 16, 32)
RATES = (500, 1_000, 10_000, 50_000, 200_000)
_SECTION = re.compile(r"^### ([\w-]+)$", re.MULTILINE)
_ROW = re.compile(r"^\| ([^|]+?) \| ([\d.,]+) [^|]*\|", re.MULTILINE)
_TABLES = re.compile(r"(<!-- tables: .*? -->\n).*?(<!-- end of tables -->)", re.DOTALL)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.scaling")
    parser.add_argument("--measured", action="store_true")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    figures = kept_figures() if asked.measured else written_figures(PERFORMANCE.read_text())
    try:
        text = tables(Costs.of(figures), figures)
    except KeyError as missing:
        sys.stderr.write(f"There is no figure {missing}: run `make bench` with it first.\n")
        return 1
    if asked.write:
        PAGE.write_text(with_tables(PAGE.read_text(), text))
    else:
        sys.stdout.write(text)
    return 0


def written_figures(page: str) -> Figures:
    """The figures of a page that `python -m bench --markdown` made."""
    _, *parts = _SECTION.split(page)
    return {
        (benchmark, name): float(value.replace(",", ""))
        for benchmark, rows in zip(parts[::2], parts[1::2], strict=True)
        for name, value in _ROW.findall(rows)
    }


def kept_figures() -> Figures:
    _, reports = results.load(results.DEFAULT_PATH)
    return {
        (report.benchmark, figure.name): figure.value
        for _, report in reports
        for figure in report.figures
    }


def with_tables(page: str, text: str) -> str:
    """The page with these tables in place of those before."""
    return _TABLES.sub(lambda found: f"{found[1]}\n{text}\n{found[2]}", page)


def tables(costs: Costs, figures: Figures) -> str:
    return "\n".join([*_large(costs), "", *_single(costs), *_checked(costs, figures), ""])


def _large(costs: Costs) -> Iterator[str]:
    yield "### Large writes, mirrored"
    yield ""
    yield "| logs | topics of one size | Spark cores | one has a fifth of all | Spark cores |"
    yield "|---:|---:|---:|---:|---:|"
    for logs in LOGS:
        even, skewed = sustained(costs, logs), sustained(costs, logs, skew=1.0)
        yield (
            "| "
            + " | ".join(
                (
                    str(logs),
                    f"{short(even.records_per_second / 1e6)} M/s",
                    short(even.spark_cores),
                    f"{short(skewed.records_per_second / 1e6)} M/s",
                    short(skewed.spark_cores),
                )
            )
            + " |"
        )


def _single(costs: Costs) -> Iterator[str]:
    for title, over_http in (
        ("Single records in the owner's process: p50 / p99", False),
        ("Single records over HTTP, one a request: p50 / p99", True),
    ):
        yield f"### {title}"
        yield ""
        yield "| records/s in all | " + " | ".join(_counted(logs) for logs in LOGS) + " |"
        yield "|---:|" + "---:|" * len(LOGS)
        for rate in RATES:
            cells = (_wait(costs, rate / logs, over_http=over_http) for logs in LOGS)
            yield f"| {rate:,} | " + " | ".join(cells) + " |"
        yield ""


def _counted(logs: int) -> str:
    return "1 log" if logs == 1 else f"{logs} logs"


def _wait(costs: Costs, per_second: float, *, over_http: bool) -> str:
    found = waits(costs, per_second, over_http=over_http)
    if found is None:
        return "too much"
    return f"{short(found[0] * 1e3)} / {short(found[1] * 1e3)} ms"


def _checked(costs: Costs, figures: Figures) -> Iterator[str]:
    """What the simulation says of what was measured too."""
    yield "### The simulation beside what was measured"
    yield ""
    yield "| 1,000 single records a second, one log | simulated | measured |"
    yield "|---|---:|---:|"
    for where, over_http, benchmark, name in (
        ("in the owner's process", False, "publish", "1,000/s, 1 partition"),
        ("over HTTP", True, "serve-publish", "1,000/s"),
    ):
        found = waits(costs, 1000, over_http=over_http)
        for label, seconds in zip(("p50", "p99"), found or (), strict=True):
            measured = figures[benchmark, f"{name}, {label}"]
            yield f"| {where}, {label} | {short(seconds * 1e3)} ms | {short(measured)} ms |"


if __name__ == "__main__":
    sys.exit(main())
