"""Where results are kept between runs: one file, each benchmark's latest report with its time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.figures import Figure, Report

DEFAULT_PATH = Path("build/bench.json")


def lines_of(machine: Mapping[str, str], at: str, report: Report) -> Iterator[str]:
    """One JSON object for each figure."""
    for figure in report.figures:
        fields = {"benchmark": report.benchmark, **figure.fields(), "at": at, "machine": machine}
        yield json.dumps(fields)


def save(path: Path, machine: Mapping[str, str], at: str, report: Report) -> None:
    """Keep this report; what was measured on another machine goes."""
    kept = _load(path)
    if kept["machine"] != machine:
        kept = {"machine": dict(machine), "benchmarks": {}}
    kept["benchmarks"][report.benchmark] = {
        "at": at,
        "what": report.what,
        "reference": report.reference,
        "figures": [figure.fields() for figure in report.figures],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(kept, indent=1))


def load(path: Path) -> tuple[dict[str, str], list[tuple[str, Report]]]:
    """The machine, and all reports that were kept, each with its time."""
    kept = _load(path)
    return kept["machine"], [
        (
            fields["at"],
            Report(
                name,
                fields["what"],
                fields["reference"],
                tuple(Figure.from_fields(figure) for figure in fields["figures"]),
            ),
        )
        for name, fields in kept["benchmarks"].items()
    ]


def _load(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {"machine": {}, "benchmarks": {}}
    kept: dict[str, Any] = json.loads(path.read_text())
    return kept
