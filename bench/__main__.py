"""The command: run benchmarks by name, or show what earlier runs gave."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from rich.console import Console

from bench import results
from bench.machine import machine, now
from bench.scratch import TooLittleDisk, scratch_in
from bench.shown import markdown, print_report
from bench.suite import Benchmark, all_benchmarks


def main() -> int:
    asked = _parser().parse_args()
    if asked.markdown:
        sys.stdout.write(markdown(*results.load(asked.out)) + "\n")
        return 0
    benchmarks = all_benchmarks(asked.records)
    unknown = set(asked.names) - set(benchmarks)
    if unknown:
        sys.stderr.write(f"No benchmark {sorted(unknown)}. There are: {', '.join(benchmarks)}.\n")
        return 2
    wanted = [
        benchmark
        for name, benchmark in benchmarks.items()
        if asked.all or name in asked.names or (not asked.names and not benchmark.by_itself)
    ]
    try:
        _run(wanted, asked)
    except TooLittleDisk as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _run(wanted: list[Benchmark], asked: argparse.Namespace) -> None:
    here = machine()
    console = Console(stderr=asked.json)
    console.print(_introduction(here), style="dim")
    reached: list[bool] = []
    with scratch_in(asked.dir) as scratch:
        for benchmark in wanted:
            scratch.check_room(benchmark.disk_bytes)
            at = now()
            report = benchmark.run(scratch)
            print_report(console, report)
            results.save(asked.out, here, at, report)
            if asked.json:
                sys.stdout.writelines(f"{line}\n" for line in results.lines_of(here, at, report))
                sys.stdout.flush()
            reached += [f.reached for f in report.figures if f.reached is not None]
    console.print(f"{sum(reached)} of {len(reached)} targets reached. Kept in {asked.out}.")


def _introduction(here: Mapping[str, str]) -> str:
    return ", ".join(
        value if name in {"cpu", "memory", "system"} else f"{name} {value}"
        for name, value in here.items()
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    benchmarks = all_benchmarks(0)
    parser.add_argument(
        "names", nargs="*", help=f"of {', '.join(benchmarks)}; none: the short ones"
    )
    parser.add_argument("--all", action="store_true", help="also those that take minutes")
    parser.add_argument("--dir", type=Path, help="folder on the disk to measure")
    parser.add_argument(
        "--records", type=int, default=100_000_000, help="size of the large log of `flat`"
    )
    parser.add_argument("--json", action="store_true", help="one object a figure on stdout")
    parser.add_argument("--out", type=Path, default=results.DEFAULT_PATH, help="where to keep them")
    parser.add_argument("--markdown", action="store_true", help="run nothing, show what was kept")
    return parser


if __name__ == "__main__":
    sys.exit(main())
