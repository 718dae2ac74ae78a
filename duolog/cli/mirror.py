"""`duolog mirror …`"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from duolog.cli import output
from duolog.cli.opening import opened
from duolog.cli.options import AsJson, HostToken, HostUrl, LogFolder

if TYPE_CHECKING:
    from duolog.log import LogAccess
    from duolog.log.mirror_model import Mirror

app = typer.Typer(no_args_is_help=True, help="The mirror of a log in Kafka.")


@dataclass(frozen=True, slots=True)
class MirroredPartition:
    """How far a partition is mirrored."""

    mirror: Mirror
    next_offset: int  # of the log

    @property
    def behind(self) -> int:
        """How many records Kafka has still to get."""
        return max(0, self.next_offset - self.mirror.next_log_offset)

    @property
    def skipped(self) -> int:
        return sum(skip.count for skip in self.mirror.skips)


@app.callback()
def mirror() -> None:
    """Only the commands below."""


@app.command()
def status(
    topic: Annotated[
        str | None, typer.Argument(metavar="[TOPIC]", help="This one alone.", show_default=False)
    ] = None,
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """How far each partition is in Kafka.

    MIRRORED is the offset of the log up to which Kafka has it, and IN KAFKA
    the offset after the last of these records there.
    """
    with opened(log, url, token) as opened_log:
        partitions = _partitions(opened_log, topic)
    if as_json:
        for each in partitions:
            output.json_line(_fields(each))
        return
    if not partitions:
        output.note("Nothing is mirrored. `duolog serve --bootstrap-servers H:P` mirrors a log.")
        return
    output.table(
        (
            "TOPIC",
            ">PARTITION",
            "KAFKA TOPIC",
            ">MIRRORED",
            ">BEHIND",
            ">SKIPPED",
            ">IN KAFKA",
        ),
        [
            (
                each.mirror.topic,
                str(each.mirror.partition),
                each.mirror.target.kafka_topic,
                f"{each.mirror.next_log_offset:,}",
                f"{each.behind:,}",
                f"{each.skipped:,}",
                f"{each.mirror.next_kafka_offset:,}",
            )
            for each in partitions
        ],
    )


@app.command()
def restart(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Of the log.")],
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """Begin a topic's mirror anew, after its Kafka topic was deleted.

    Copies what the log keeps into the Kafka topic, which is made if there is
    none. A host that mirrors the log notices by itself.
    """
    from duolog.bridge.kafka.mirror.restarting import restart as forget

    with opened(log, url, token) as opened_log:
        partitions = forget(opened_log, topic)
    if as_json:
        output.json_line({"topic": topic, "partitions": partitions})
    elif partitions:
        output.note(f"The mirror of {topic} begins anew, in {partitions} partitions.")
    else:
        output.note(f"{topic} has no mirror: there is nothing to begin anew.")


def _partitions(log: LogAccess, topic: str | None) -> list[MirroredPartition]:
    mirrors = log.mirrors(topic)
    ends = {
        (offsets.topic, offsets.partition): offsets.next_offset
        for name in sorted({mirror.topic for mirror in mirrors})
        for offsets in log.offsets(name)
    }
    return [
        MirroredPartition(mirror, ends[(mirror.topic, mirror.partition)])
        for mirror in sorted(mirrors, key=lambda mirror: (mirror.topic, mirror.partition))
    ]


def _fields(each: MirroredPartition) -> dict[str, object]:
    target = each.mirror.target
    return {
        "topic": each.mirror.topic,
        "partition": each.mirror.partition,
        "kafka_topic": target.kafka_topic,
        "cluster_id": target.cluster_id,
        "mirrored_offset": each.mirror.next_log_offset,
        "next_offset": each.next_offset,
        "behind": each.behind,
        "skipped": each.skipped,
        "kafka_offset": each.mirror.next_kafka_offset,
        "runs": len(each.mirror.runs),
    }
