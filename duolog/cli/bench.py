"""`duolog bench`"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from duolog import output
from duolog.cli.kafka_options import BootstrapServers, KafkaOptions, kafka_flags, kafka_settings
from duolog.cli.measure.suite import NAMES, NEEDS_KAFKA
from duolog.cli.options import AsJson

_BYTES_A_RECORD = 500  # of disk, at the most, while one is measured


def _names(incomplete: str) -> list[str]:
    return [name for name in NAMES if name.startswith(incomplete)]


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help=f"Of {', '.join(NAMES)}.",
            show_default="all",
            autocompletion=_names,
        ),
    ] = None,
    records: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many records are moved.")
    ] = 500_000,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--dir", metavar="DIR", help="On the disk to measure.", show_default="where you are"
        ),
    ] = None,
    bootstrap_servers: BootstrapServers = None,
    kafka_options: KafkaOptions = None,
    as_json: AsJson = False,
) -> None:
    """Measure how fast Duolog is here, in a few seconds.

    Writes into a folder of its own and removes it. `consume` starts a host
    on a free port. `mirror` is measured with --bootstrap-servers, in topics of
    its own that are deleted afterwards. Bars of one name may be compared;
    what else the machine does meanwhile shows in them.
    """
    from duolog.cli.measure.bars import show
    from duolog.cli.measure.suite import measures
    from duolog.errors import DiskFull
    from duolog.settings import load_settings

    settings = load_settings({"kafka": kafka_flags(bootstrap_servers, kafka_options)})
    known = measures(kafka_settings(settings))
    wanted = list(names or known)
    for name in wanted:
        if name not in NAMES:
            raise typer.BadParameter(f"'{name}' is none of {', '.join(NAMES)}.", param_hint="NAME")
        if name not in known:
            raise typer.BadParameter(
                "The mirror is measured with --bootstrap-servers H:P; `duolog kafka` runs one.",
                param_hint="NAME",
            )
    place = folder or Path.cwd()
    needed = records * _BYTES_A_RECORD
    if shutil.disk_usage(place).free < needed + int(settings.min_free_bytes):
        raise DiskFull(
            f"{place} has not the {needed >> 20:,} MiB that this takes for a moment. Name another "
            "disk with --dir, or measure fewer --records."
        )
    for name in wanted:
        with tempfile.TemporaryDirectory(prefix="duolog-bench-", dir=place) as scratch:
            measured = known[name](Path(scratch), records)
        if as_json:
            for fields in measured.fields():
                output.json_line(fields)
            output.flush()
        else:
            show(measured)
    if not as_json and not names and NEEDS_KAFKA not in known:
        output.note("The mirror is measured too with --bootstrap-servers H:P.")
