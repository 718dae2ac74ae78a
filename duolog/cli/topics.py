"""`duolog topic …`"""

from __future__ import annotations

import getpass
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duolog import output
from duolog.cli import shown, topic_view
from duolog.cli.opening import confirmed, opened
from duolog.cli.options import AsJson, HostToken, HostUrl, LogFolder, TopicName, Yes
from duolog.log.model import Envelope, Format, Retention, Swept, Topic, TopicSettings, by_topic

if TYPE_CHECKING:
    from duolog.log import LogAccess

app = typer.Typer(no_args_is_help=True, help="Make, change, look at and remove topics.")


@app.command(name="list")
def list_topics(
    log: LogFolder = None, url: HostUrl = None, token: HostToken = None, as_json: AsJson = False
) -> None:
    """All topics."""
    with opened(log, url, token) as opened_log:
        heads = by_topic(opened_log.all_offsets())
        topics = [(topic, heads.get(topic.name, ())) for topic in opened_log.topics()]
    if as_json:
        for topic, offsets in topics:
            output.json_line(topic_view.summary(topic, offsets))
    elif not topics:
        output.note("No topics yet. Make one with `duolog topic create NAME`.")
    else:
        output.table(
            topic_view.HEADINGS, [topic_view.row(topic, offsets) for topic, offsets in topics]
        )


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False)],
    partitions: Annotated[int, typer.Option(metavar="N", help="How many.")] = 1,
    alias: Annotated[
        str | None, typer.Option(metavar="A", help="A second name.", show_default=False)
    ] = None,
    retention_seconds: Annotated[
        float | None,
        typer.Option(metavar="S", help="Keep records for so long.", show_default="for ever"),
    ] = None,
    retention_max_bytes: Annotated[
        int | None,
        typer.Option(metavar="B", help="Keep so much of each partition.", show_default="no limit"),
    ] = None,
    dedup_window_seconds: Annotated[
        float | None,
        typer.Option(
            metavar="W",
            help="Leave out a change that repeats its key's latest one within this time.",
            show_default="off",
        ),
    ] = None,
    key_format: Annotated[Format, typer.Option(help="How keys are encoded.")] = Format.JSON,
    value_format: Annotated[Format, typer.Option(help="How values are encoded.")] = Format.JSON,
    envelope: Annotated[Envelope, typer.Option(help="What is around a row.")] = Envelope.FLAT,
    json_int64_as_string: Annotated[
        bool,
        typer.Option(
            "--json-int64-as-string",
            help="64-bit integers as strings in JSON, for readers such as JavaScript.",
        ),
    ] = False,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="A topic of this name is left as it is.")
    ] = False,
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """Make a topic, and the log too if there is none in the directory yet."""
    settings = TopicSettings(
        alias=alias,
        partitions=partitions,
        retention=Retention(retention_seconds, retention_max_bytes),
        key_format=key_format,
        value_format=value_format,
        envelope=envelope,
        dedup_window_seconds=dedup_window_seconds,
        json_int64_as_string=json_int64_as_string,
    )
    with opened(log, url, token, create=True) as opened_log:
        topic = opened_log.create_topic(name, settings, if_not_exists=if_not_exists)
        topic_view.show(opened_log, topic, as_json=as_json)


@app.command()
def describe(
    topic: TopicName,
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """One topic: its settings, partitions and routes."""
    with opened(log, url, token) as opened_log:
        topic_view.show(opened_log, opened_log.topic(topic), as_json=as_json)


@app.command()
def alter(
    topic: TopicName,
    partitions: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="More partitions than now. Keys may move to others from then on.",
            show_default=False,
        ),
    ] = None,
    retention_seconds: Annotated[
        str | None,
        typer.Option(metavar="S|none", help="Keep records for so long.", show_default=False),
    ] = None,
    retention_max_bytes: Annotated[
        str | None,
        typer.Option(metavar="B|none", help="Keep so much of each partition.", show_default=False),
    ] = None,
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """Change retention, or grow. What is not given stays as it is."""
    if partitions is None and retention_seconds is None and retention_max_bytes is None:
        raise typer.BadParameter(
            "Say what to change: --partitions, --retention-seconds or --retention-max-bytes."
        )
    seconds = _number_or_none(retention_seconds, float, "--retention-seconds")
    max_bytes = _number_or_none(retention_max_bytes, int, "--retention-max-bytes")
    with opened(log, url, token) as opened_log:
        changed = opened_log.topic(topic)
        if partitions is not None:
            changed = opened_log.set_partitions(changed.id, partitions)
        if retention_seconds is not None or retention_max_bytes is not None:
            now = changed.retention
            changed = opened_log.set_retention(
                changed.id,
                Retention(
                    now.seconds if retention_seconds is None else seconds,
                    now.max_bytes if retention_max_bytes is None else max_bytes,
                    now.waits_for_mirror,
                ),
            )
        topic_view.show(opened_log, changed, as_json=as_json)


@app.command()
def clear(
    topic: TopicName,
    yes: Yes = False,
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """Remove all records of a topic. Its offsets go on; routes and group positions stay."""
    with opened(log, url, token) as opened_log:
        found = opened_log.topic(topic)
        held = topic_view.records(opened_log.offsets(found.id))
        confirmed(f"Remove all {shown.things(held, 'record')} of topic '{found.name}'?", yes=yes)
        swept = opened_log.clear_topic(found.id)
    _report(found, swept, "Cleared", as_json=as_json)


@app.command()
def delete(
    topic: TopicName,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="No such topic is no error.")
    ] = False,
    yes: Yes = False,
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """Remove a topic with its records, routes and group positions."""
    from duolog.errors import UnknownTopic

    with opened(log, url, token) as opened_log:
        try:
            found = opened_log.topic(topic)
        except UnknownTopic:
            if not if_exists:
                raise
            output.note(f"There is no topic '{topic}'; nothing to delete.")
            return
        held = topic_view.records(opened_log.offsets(found.id))
        confirmed(f"Delete topic '{found.name}' with {shown.things(held, 'record')}?", yes=yes)
        swept = opened_log.drop_topic(found.id)
    _report(found, swept, "Deleted", as_json=as_json)


@app.command()
def skip(
    topic: TopicName,
    partition: Annotated[
        int, typer.Option("--partition", metavar="P", min=0, help="Of this partition.")
    ],
    to: Annotated[
        int,
        typer.Option(
            "--to",
            metavar="OFFSET",
            min=0,
            help="The offset behind the damaged batch: the first one that is read again.",
        ),
    ],
    yes: Yes = False,
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """Give up the records of damaged batches before an offset.

    Readers, the mirror and groups pass over their offsets, which stay used.
    Only what cannot be decoded is given up; restore a backup if you can.
    """
    with opened(log, url, token) as opened_log:
        found = opened_log.topic(topic)
        damage = _damage_before(opened_log, found, partition, to)
        if damage:
            places = ", ".join(f"{first}-{stop - 1}" for first, stop in damage)
            count = sum(stop - first for first, stop in damage)
            confirmed(
                f"Give up {shown.things(count, 'record')} of topic '{found.name}' partition "
                f"{partition}, at offsets {places}?",
                yes=yes,
            )
        holes = opened_log.skip_to(found.id, partition, to, by=_who())
    for hole in holes:
        if as_json:
            output.json_line(topic_view.hole_fields(hole))
        else:
            output.note(
                f"Skipped offsets {hole.first_offset}-{hole.next_offset - 1} of topic "
                f"'{hole.topic}' partition {hole.partition}: {shown.things(hole.count, 'record')} "
                "given up."
            )


def _damage_before(log: LogAccess, topic: Topic, partition: int, to: int) -> list[tuple[int, int]]:
    """What a skip would give up, to be asked about. The log decides for itself."""
    from duolog.errors import OffsetOutOfRange

    at = to
    with suppress(OffsetOutOfRange):  # the skip says what is wrong, and goes back as far
        while at > 0:
            found = log.look_for_damage(topic.id, partition, at - 1)
            if found is None:
                break
            at = found.first_offset
    return [
        (each.first_offset, each.next_offset)
        for each in log.damage(topic.id)
        if each.partition == partition and each.next_offset <= to
    ]


def _who() -> str:
    """Who this machine takes the caller for."""
    try:
        return f"{getpass.getuser()}@{socket.gethostname()}"
    except (KeyError, OSError):  # a user without a name, as in a container
        return socket.gethostname()


def _report(topic: Topic, swept: Swept, done: str, *, as_json: bool) -> None:
    if as_json:
        output.json_line(
            {
                "topic": topic.name,
                "messages_deleted": swept.messages_deleted,
                "bytes_freed": swept.bytes_freed,
            }
        )
    else:
        removed = shown.things(swept.messages_deleted, "record")
        output.note(f"{done} topic '{topic.name}': {removed} removed.")


def _number_or_none(text: str | None, kind: type[int | float], option: str) -> Any:
    if text is None or text.lower() == "none":
        return None
    try:
        return kind(text)
    except ValueError:
        raise typer.BadParameter(
            f"'{text}' is neither a number nor none.", param_hint=option
        ) from None
