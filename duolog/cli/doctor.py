"""`duolog doctor`"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path

import typer

from duolog.cli import output
from duolog.cli.checkup import Finding, Status
from duolog.cli.options import AsJson, LogFolder

_STYLES = {Status.OK: "green", Status.WARNING: "yellow", Status.ERROR: "bold red"}


def doctor(log: LogFolder = None, as_json: AsJson = False) -> None:
    """Look whether this machine and the log are fit, and say what to do.

    Exit code 1 if something is an error. The speed of the disk is measured
    by writing a little into the log's directory, or into the current one.
    """
    worst = _show(_findings(log), as_json=as_json)
    if worst is Status.ERROR:
        raise typer.Exit(1)


def _findings(log: str | None) -> Iterator[Finding]:
    from duolog.cli import checkup, checkup_disk, checkup_log
    from duolog.log.location import check_location
    from duolog.settings import load_settings

    settings = load_settings({"log": log})
    yield checkup.python()
    yield from checkup.libraries()
    yield checkup.java()
    folder = Path.cwd()
    if settings.log is not None:
        folder = check_location(settings.log)
    existing = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    yield checkup_disk.file_system(existing)
    yield checkup_disk.free_space(existing, int(settings.min_free_bytes))
    yield checkup_disk.sync_speed(existing)
    if settings.log is not None:
        yield from checkup_log.log(folder, settings.log_options())


def _show(findings: Iterable[Finding], *, as_json: bool) -> Status:
    """Show each finding as soon as it is there; returns the worst."""
    worst = Status.OK
    if as_json:
        for finding in findings:
            worst = max(worst, finding.status)
            output.json_line({**asdict(finding), "status": finding.status.word})
            output.flush()
        return worst
    from rich.table import Table
    from rich.text import Text

    console = output.console()
    for finding in findings:
        worst = max(worst, finding.status)
        line = Table.grid(padding=(0, 2))
        line.add_column(width=7)
        line.add_column(width=11)
        line.add_column(overflow="fold")
        told = Text(finding.found)
        if finding.advice:
            told.append(f"\n{finding.advice}", style="dim")
        line.add_row(Text(finding.status.word, style=_STYLES[finding.status]), finding.check, told)
        console.print(line)
    return worst
