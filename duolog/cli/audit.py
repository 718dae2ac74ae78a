"""`duolog audit`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from duolog import output
from duolog.cli import completing
from duolog.cli.kafka_options import (
    BootstrapServers,
    Groups,
    GroupsExclude,
    KafkaOptions,
    kafka_flags,
    kafka_settings,
)
from duolog.cli.opening import opened
from duolog.cli.options import AsJson, HostToken, HostUrl, LogFolder
from duolog.cli.progress import OneBar, bars

if TYPE_CHECKING:
    from duolog.bridge.kafka.audit import AuditReport, PartitionReport, PositionReport

_MOST_LINES = 20


def audit(
    bootstrap_servers: BootstrapServers = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="T",
            help="These alone; may be repeated.",
            autocompletion=completing.topics,
        ),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Compare about so many records of each partition.",
            show_default="all",
        ),
    ] = None,
    groups: Groups = None,
    groups_exclude: GroupsExclude = None,
    kafka_options: KafkaOptions = None,
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """Read a log and its mirror in Kafka, and compare every record and position.

    Ends with 0 only if all of it is equal: keys, values, headers, timestamps
    and order of all records that the mirror has written, nothing of ours in
    Kafka twice, and one position for each group on both sides.
    """
    from duolog.bridge.kafka import audit as audits
    from duolog.bridge.kafka.feed.filters import GroupFilter
    from duolog.settings import load_settings

    settings = load_settings(
        {
            "kafka": kafka_flags(bootstrap_servers, kafka_options),
            "mirror": {"groups": groups, "groups_exclude": groups_exclude},
        }
    )
    kafka = kafka_settings(settings)
    if kafka is None:
        raise typer.BadParameter(
            "Say where Kafka is: --bootstrap-servers H:P.", param_hint="--bootstrap-servers"
        )
    with opened(log, url, token) as opened_log, bars(silent=as_json) as begin:
        report = audits.audit(
            opened_log,
            kafka.for_confluent(),
            topics=topic or (),
            sample=sample,
            groups=GroupFilter.of(settings.mirror.groups, settings.mirror.groups_exclude),
            watcher=OneBar(begin, "Comparing"),
        )
    if as_json:
        output.json_line(report.as_json())
    else:
        _print(report)
    if not report.is_equal:
        raise typer.Exit(1)


def _print(report: AuditReport) -> None:
    output.table(
        ("TOPIC", ">PARTITION", ">COMPARED", ">PENDING", ">SKIPPED", ">FOREIGN", ">DIFFERENT"),
        [_partition_row(each) for each in report.partitions],
    )
    if report.positions:
        output.blank()
        output.table(
            ("GROUP", "TOPIC", ">PARTITION", ">POSITION", ">IN KAFKA", "EQUAL"),
            [_position_row(each) for each in report.positions],
        )
    _print_differences(report)
    output.blank()
    output.line(_verdict(report))


def _partition_row(each: PartitionReport) -> tuple[str, ...]:
    counts = (each.compared, each.pending, each.skipped, each.foreign, sum(each.counts.values()))
    return (each.topic, str(each.partition), *(f"{count:,}" for count in counts))


def _position_row(each: PositionReport) -> tuple[str, ...]:
    return (
        each.group,
        each.topic,
        str(each.partition),
        _number(each.position),
        _number(each.kafka_position),
        "yes" if each.is_equal else f"no: {_number(each.expected)} expected",
    )


def _number(offset: int | None) -> str:
    return "none" if offset is None else f"{offset:,}"


def _print_differences(report: AuditReport) -> None:
    lines = [
        f"{each.topic}/{each.partition}: {difference.said}"
        for each in report.partitions
        for difference in each.differences
    ]
    if not lines:
        return
    output.blank()
    all_of_them = sum(sum(each.counts.values()) for each in report.partitions)
    shown = lines[:_MOST_LINES]
    output.line(*shown)
    if all_of_them > len(shown):
        output.line(f"... and {all_of_them - len(shown):,} more.")


def _verdict(report: AuditReport) -> str:
    how = "" if report.sampled is None else " of a sample"
    what = (
        f"{report.compared:,} records{how} in {len(report.partitions):,} partitions, "
        f"{len(report.positions):,} group positions, {report.seconds:.1f} s"
    )
    return f"{'Equal' if report.is_equal else 'NOT EQUAL'}: {what}."
