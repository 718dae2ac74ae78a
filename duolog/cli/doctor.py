"""`duolog doctor`"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from duolog import output
from duolog.cli import shown
from duolog.cli.checkup import Finding, Status
from duolog.cli.kafka_options import (
    BootstrapServers,
    KafkaOptions,
    kafka_flags,
    kafka_settings,
)
from duolog.cli.options import AsJson, LogFolder

if TYPE_CHECKING:
    from duolog.bridge.kafka.settings import KafkaSettings
    from duolog.log.model import Topic
    from duolog.settings import Settings


_STYLES = {Status.OK: "green", Status.WARNING: "yellow", Status.ERROR: "bold red"}


def doctor(
    log: LogFolder = None,
    bootstrap_servers: BootstrapServers = None,
    kafka_options: KafkaOptions = None,
    as_json: AsJson = False,
) -> None:
    """Look whether this machine and the log are fit, and say what to do.

    Exit code 1 if something is an error. The speed of the disk is measured
    by writing a little into the log's directory, or into the current one.
    With --bootstrap-servers Kafka is asked whether it can be mirrored into,
    and what one may do there; nothing is changed.
    """
    from duolog.settings import load_settings

    flags = {"log": log, "kafka": kafka_flags(bootstrap_servers, kafka_options)}
    settings = load_settings(flags)
    worst = _show(_findings(settings, kafka_settings(settings)), as_json=as_json)
    if worst is Status.ERROR:
        raise typer.Exit(1)


def _findings(settings: Settings, kafka: KafkaSettings | None) -> Iterator[Finding]:
    from duolog.cli import checkup, checkup_disk, checkup_extras, checkup_log, checkup_machine
    from duolog.log.location import check_location

    yield checkup.python()
    yield from checkup.libraries()
    yield from checkup_extras.extras()
    java, java_version = checkup.java()
    yield java
    yield from checkup_extras.spark(java_version)
    folder = Path.cwd()
    if settings.log is not None:
        folder = check_location(settings.log)
    existing = next(parent for parent in (folder, *folder.parents) if parent.is_dir())
    yield checkup_disk.file_system(existing)
    yield checkup_disk.free_space(existing, int(settings.min_free_bytes))
    yield checkup_disk.sync_speed(existing)
    yield checkup_machine.open_files()
    yield checkup_machine.clock()
    yield from _ports(settings)
    yield _registry(settings)
    topics: tuple[Topic, ...] = ()
    if settings.log is not None:
        yield from checkup_log.log(folder, settings.log_options())
        topics = checkup_log.topics_of(folder, settings.log_options()) if kafka else ()
    if kafka is not None:
        from duolog.cli import checkup_kafka

        yield from checkup_kafka.kafka(kafka, topics)


def _ports(settings: Settings) -> Iterator[Finding]:
    from duolog.cli import checkup_machine
    from duolog.cli.kafka import DEFAULT_PORT as KAFKA_PORT
    from duolog.server.address import Address

    serve, registry = Address.of(settings.serve.listen), Address.of(settings.registry.listen)
    for host, number, what in (
        (serve.host, serve.port, "serve"),
        (registry.host, registry.port, "registry"),
        ("127.0.0.1", KAFKA_PORT, "kafka"),
    ):
        if number:
            yield checkup_machine.port(host, number, what)


def _registry(settings: Settings) -> Finding:
    from duolog.cli.checkup_registry import registry

    return registry(settings.avro_options())


def _show(findings: Iterable[Finding], *, as_json: bool) -> Status:
    """Show each finding as soon as it is there; returns the worst."""
    worst = Status.OK
    counts = Counter[Status]()
    if as_json:
        for finding in findings:
            worst = max(worst, finding.status)
            output.json_line({**asdict(finding), "status": finding.status.word})
            output.flush()
        return worst
    from rich.table import Table

    for finding in findings:
        worst = max(worst, finding.status)
        counts[finding.status] += 1
        line = Table.grid(padding=(0, 2))
        line.add_column(width=7)
        line.add_column(width=11)
        line.add_column(overflow="fold")
        told = output.styled(finding.found)
        if finding.advice:
            told.append(output.styled(f"\n{finding.advice}", "dim"))
        status = output.styled(finding.status.word, _STYLES[finding.status])
        line.add_row(status, finding.check, told)
        output.show(line)
    output.blank()
    output.show(output.styled(_summary(counts), _STYLES[worst]))
    return worst


def _summary(counts: Counter[Status]) -> str:
    found = [
        shown.things(counts[status], status.word)
        for status in (Status.ERROR, Status.WARNING)
        if counts[status]
    ]
    return " and ".join(found) + "." if found else "All is well."
