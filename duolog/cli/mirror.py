"""`duolog mirror …`"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from duolog import output
from duolog.cli import completing
from duolog.cli.opening import confirmed, opened
from duolog.cli.options import AsJson, HostToken, HostUrl, LogFolder, Yes
from duolog.log.mirror_modes import MirrorMode

if TYPE_CHECKING:
    from duolog.log.mirrored import MirroredPartition

app = typer.Typer(no_args_is_help=True, help="The mirror of a log in Kafka.")


TopicOrAll = Annotated[
    str | None,
    typer.Argument(
        metavar="[TOPIC]",
        help="This one alone.",
        show_default=False,
        autocompletion=completing.topics,
    ),
]


@app.callback()
def mirror() -> None:
    """Only the commands below."""


@app.command()
def status(
    topic: TopicOrAll = None,
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """How far each partition is in Kafka.

    MIRRORED is the offset of the log up to which Kafka has it, and IN KAFKA
    the offset after the last of these records there. PHASE is what its worker
    does, as it has said in the last 15 seconds.
    """
    from duolog.log.mirrored import mirrored_partitions

    with opened(log, url, token) as opened_log:
        partitions = list(mirrored_partitions(opened_log, topic))
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
            "PHASE",
            ">MIRRORED",
            ">BEHIND",
            ">SKIPPED",
            ">IN KAFKA",
        ),
        [
            (
                each.topic,
                str(each.partition),
                each.kafka_topic or "",
                each.phase,
                f"{each.mirrored_offset:,}",
                f"{each.behind:,}",
                "" if each.mirror is None else f"{each.mirror.skipped:,}",
                "" if each.mirror is None else f"{each.mirror.next_kafka_offset:,}",
            )
            for each in partitions
        ],
    )
    for trouble in dict.fromkeys(each.trouble for each in partitions):
        if trouble is not None:
            output.note(trouble)


@app.command()
def pause(
    topic: TopicOrAll = None,
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """Send nothing more to Kafka until it is resumed.

    Of one topic, or of all and of those to come. A host notices within a
    second; groups go on as far as Kafka has the log.
    """
    changed = _set(MirrorMode.PAUSED, topic, log, url, token, as_json=as_json)
    _report(changed, topic, "is paused", as_json=as_json)


@app.command()
def resume(
    topic: TopicOrAll = None,
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """Go on exactly where it was paused.

    A mirror that was halted by copies in Kafka goes on behind them. One that
    was detached begins again, when it is named.
    """
    changed = _set(MirrorMode.ON, topic, log, url, token, as_json=as_json)
    _report(changed, topic, "goes on", as_json=as_json)


@app.command()
def detach(
    topic: TopicOrAll = None,
    yes: Yes = False,
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """End a mirror for good; the Kafka topic stays as it is.

    What is known of it is forgotten, so groups have native positions only.
    `duolog mirror resume TOPIC` begins it again, into a Kafka topic that has
    none of its records: delete the old one first.
    """
    confirmed(f"End the mirror of {topic or 'all topics'}, and forget how far it is?", yes=yes)
    changed = _set(MirrorMode.DETACHED, topic, log, url, token, as_json=as_json)
    _report(changed, topic, "is detached", as_json=as_json)


def _set(
    mode: MirrorMode,
    topic: str | None,
    log: str | None,
    url: str | None,
    token: str | None,
    *,
    as_json: bool,
) -> tuple[str, ...]:
    with opened(log, url, token) as opened_log:
        changed = opened_log.set_mirror_mode(topic, mode)
    if as_json:
        output.json_line({"mode": mode.value, "changed": list(changed)})
    return changed


def _report(changed: tuple[str, ...], topic: str | None, done: str, *, as_json: bool) -> None:
    if as_json:
        return
    if changed:
        output.note("\n".join(f"The mirror of {name} {done}." for name in changed))
    else:
        what = "No topic's mirror" if topic is None else f"The mirror of {topic}"
        output.note(f"{what} is changed: nothing is to be done.")


@app.command()
def restart(
    topic: Annotated[
        str, typer.Argument(metavar="TOPIC", help="Of the log.", autocompletion=completing.topics)
    ],
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


def _fields(each: MirroredPartition) -> dict[str, object]:
    mirror = each.mirror
    return {
        "topic": each.topic,
        "partition": each.partition,
        "kafka_topic": each.kafka_topic,
        "cluster_id": None if mirror is None else mirror.target.cluster_id,
        "phase": each.phase,
        "code": each.code,
        "trouble": each.trouble,
        "mirrored_offset": each.mirrored_offset,
        "next_offset": each.next_offset,
        "behind": each.behind,
        "skipped": 0 if mirror is None else mirror.skipped,
        "kafka_offset": None if mirror is None else mirror.next_kafka_offset,
        "runs": 0 if mirror is None else len(mirror.runs),
    }
