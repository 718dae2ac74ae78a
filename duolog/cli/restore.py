"""`duolog restore`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from duolog import output
from duolog.cli import shown
from duolog.cli.kafka_options import (
    BootstrapServers,
    Groups,
    GroupsExclude,
    KafkaOptions,
    kafka_flags,
    kafka_settings,
)
from duolog.cli.opening import settings_with_log
from duolog.cli.options import AsJson, LogFolder
from duolog.cli.progress import OneBar, bars

if TYPE_CHECKING:
    from duolog.bridge.kafka.restore import RestoredLog
    from duolog.settings import Settings


def restore(
    source: Annotated[
        Path | None,
        typer.Argument(metavar="[SOURCE]", help="The folder of a backup.", show_default=False),
    ] = None,
    from_kafka: Annotated[
        bool, typer.Option("--from-kafka", help="In place of SOURCE: from the mirror in Kafka.")
    ] = False,
    bootstrap_servers: BootstrapServers = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="KAFKA[=NAME]",
            help="With --from-kafka: this topic, and its name in the log; may be repeated.",
            show_default="all but Kafka's own",
        ),
    ] = None,
    offsets: Annotated[
        str,
        typer.Option(
            metavar="kafka|renumber",
            help="With --from-kafka: the same as there, or one after the other if they have gaps.",
        ),
    ] = "kafka",
    groups: Groups = None,
    groups_exclude: GroupsExclude = None,
    kafka_options: KafkaOptions = None,
    log: LogFolder = None,
    as_json: AsJson = False,
) -> None:
    """Make a log from a backup, or from its mirror in Kafka.

    The folder has to be empty or new, and holds a log only when all of it is
    there and was read: what is cut short is begun anew by the same command.
    The log has a new id. One from a backup does not go on with its mirror by
    itself, since the old log may still write there: it halts and says what to
    do. One from Kafka goes on behind what Kafka has.

    Kafka has records with their offsets, keys, values, headers and times, and
    the positions of groups. It has no routes, settings of topics, schemas,
    operations and tables of records, and no last epochs of writers.
    """
    settings, folder_name = settings_with_log(
        log,
        flags={
            "kafka": kafka_flags(bootstrap_servers, kafka_options) if from_kafka else {},
            "mirror": {"groups": groups, "groups_exclude": groups_exclude},
        },
    )
    folder = Path(folder_name)
    if from_kafka == (source is not None):
        raise typer.BadParameter(
            "Give the folder of a backup, or --from-kafka; one of them.", param_hint="SOURCE"
        )
    if source is not None:
        if bootstrap_servers or topic or kafka_options:
            raise typer.BadParameter(
                "--bootstrap-servers, --topic and -X belong to --from-kafka.", param_hint="--topic"
            )
        _from_backup(source, folder, settings, as_json=as_json)
    else:
        _from_kafka(folder, settings, topic or [], offsets, as_json=as_json)


def _from_backup(source: Path, folder: Path, settings: Settings, *, as_json: bool) -> None:
    from duolog.log.from_backup import restore_backup

    with bars(silent=as_json, of_bytes=True) as begin:
        restored = restore_backup(source, folder, settings.log_options(), begin)
    whole = restored.whole
    if as_json:
        output.json_line(
            {
                "log_id": restored.log_id,
                "copied_from": restored.copied_from,
                "topics": whole.topics,
                "partitions": whole.partitions,
                "records": whole.records,
                "bytes": whole.bytes,
                "unreadable": list(whole.unreadable),
            }
        )
        return
    output.note(
        f"{shown.things(whole.records, 'record')} in {shown.things(whole.topics, 'topic')}, all "
        f"of them read: {folder} is a log."
    )
    for place in whole.unreadable:
        output.note(f"A batch is as it was written, and nobody can read it: {place}")
    output.note(f"Its id is {restored.log_id}; it is a copy of {restored.copied_from}.")
    if restored.mirrored_topics:
        names = ", ".join(restored.mirrored_topics)
        output.note(
            f"{names} had a mirror in Kafka, which belongs to the old log. Make sure that the old "
            "one never runs again, delete these topics in Kafka, and run `duolog mirror restart` "
            "for each."
        )


def _from_kafka(
    folder: Path, settings: Settings, topics: list[str], offsets: str, *, as_json: bool
) -> None:
    from duolog.bridge.kafka.feed.filters import GroupFilter
    from duolog.bridge.kafka.restore import Offsets, restore_from_kafka

    if offsets not in list(Offsets):
        raise typer.BadParameter("It is kafka or renumber.", param_hint="--offsets")
    kafka = kafka_settings(settings)
    if kafka is None:
        raise typer.BadParameter(
            "Say where Kafka is: --bootstrap-servers H:P.", param_hint="--bootstrap-servers"
        )
    with bars(silent=as_json) as begin:
        restored = restore_from_kafka(
            folder,
            kafka,
            topics=topics,
            offsets=Offsets(offsets),
            groups=GroupFilter.of(settings.mirror.groups, settings.mirror.groups_exclude),
            options=settings.log_options(),
            watcher=OneBar(begin, "Reading"),
        )
    if as_json:
        output.json_line(_fields(restored))
    else:
        _print(restored, folder)


def _fields(restored: RestoredLog) -> dict[str, object]:
    return {
        "log_id": restored.log_id,
        "records": restored.records,
        "groups": restored.groups.groups,
        "positions": restored.groups.positions,
        "positions_beyond_the_end": restored.groups.beyond,
        "partitions": [
            {
                "topic": each.topic,
                "partition": each.partition,
                "kafka_topic": each.kafka_topic,
                "start_offset": each.start,
                "next_offset": each.next_offset,
                "renumbered": each.renumbered,
            }
            for each in restored.partitions
        ],
    }


def _print(restored: RestoredLog, folder: Path) -> None:
    output.table(
        ("TOPIC", ">PARTITION", "KAFKA TOPIC", ">START", ">NEXT", ">GAPS"),
        [
            (
                each.topic,
                str(each.partition),
                each.kafka_topic,
                f"{each.start:,}",
                f"{each.next_offset:,}",
                f"{each.renumbered:,}",
            )
            for each in restored.partitions
        ],
    )
    output.note(
        f"{shown.things(restored.records, 'record')}, and positions of "
        f"{shown.things(restored.groups.groups, 'group')}: {folder} is a log. Its id is "
        f"{restored.log_id}."
    )
    if restored.groups.beyond:
        output.note(
            f"{shown.things(restored.groups.beyond, 'position')} beyond the end were left to the "
            "bridge, which waits for what they stand for."
        )
    output.note(
        "Routes, settings of topics and schemas were not in Kafka: make them anew. Then "
        "`duolog serve` mirrors on, and `duolog audit` compares."
    )
