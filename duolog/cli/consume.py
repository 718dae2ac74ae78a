"""`duolog consume`"""

from __future__ import annotations

import select
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from duolog import output
from duolog.cli import completing
from duolog.cli.opening import opened
from duolog.cli.options import AsJson, HostToken, HostUrl, LogFolder, OnePartition, TopicName
from duolog.cli.record_lines import Lines
from duolog.cli.starts import start_of
from duolog.cli.turns import Turns
from duolog.log.first_positions import known_or_first

if TYPE_CHECKING:
    from duolog.cli.avro_pages import AvroPages
    from duolog.log import LogAccess
    from duolog.log.damage_model import LeftOut
    from duolog.log.model import GroupPosition, Start, Topic

_LOOK_AT_READER_SECONDS = 1.0


def consume(
    topic: TopicName,
    group: Annotated[
        str | None,
        typer.Option(
            metavar="G",
            help="Begin where this group is.",
            show_default=False,
            autocompletion=completing.groups,
        ),
    ] = None,
    begin: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="PLACE",
            help="earliest, latest, an offset, an ISO 8601 time, or @ and milliseconds since 1970. "
            "A group goes on where it is instead, once it has been somewhere.",
        ),
    ] = "earliest",
    partition: OnePartition = None,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="At most so many records.", show_default="all"),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            "-f",
            help="Wait for more at the end. Meanwhile nobody else can open the log.",
        ),
    ] = False,
    ack: Annotated[
        bool,
        typer.Option(
            "--ack",
            help="Read for the group: it begins here if it is new, and moves past what was "
            "printed. Without it the group is only looked at.",
        ),
    ] = False,
    skip_damaged: Annotated[
        bool,
        typer.Option("--skip-damaged", help="Go on behind batches that cannot be decoded."),
    ] = False,
    raw: Annotated[bool, typer.Option("--raw", help="Keys and values in base64, exactly.")] = False,
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """Print records, a JSON line each, up to the end of the topic.

    All partitions in turns, or one. A key or value is shown as JSON where it
    is that or Avro, as text where it is UTF-8, else in base64 with
    "value_encoding" beside it.

    A log that no host serves belongs to this command until it ends: nobody
    else can open it meanwhile.
    """
    del as_json  # records are JSON lines anyway; it decides how errors look
    if ack and group is None:
        raise typer.BadParameter("Say whose position is to move: --group G.", param_hint="--ack")
    start = start_of(begin, "--from")
    with opened(log, url, token) as opened_log:
        found = opened_log.topic(topic)
        numbers = tuple(range(found.partitions)) if partition is None else (partition,)
        turns = Turns(
            opened_log,
            found,
            _positions(opened_log, found, numbers, group, start, begins=ack),
            skip_damaged=skip_damaged,
            passed_over=partial(_say_left_out, found),
        )
        lines = Lines(found, raw=raw)
        avro = None if raw else _avro_pages(opened_log, found)
        left = limit
        while left is None or left > 0:
            page = turns.next_page(left)
            if page is None:
                if not follow:
                    return
                _wait(opened_log, found, turns.positions)
                continue
            shown = avro.as_json(page) if avro else page
            output.json_lines(b"".join(lines.line(page.partition, record) for record in shown))
            output.flush()
            if ack and group is not None:
                opened_log.ack(group, found.id, page.next_offset - 1, page.partition)
            left = None if left is None else left - page.count


def _say_left_out(topic: Topic, partition: int, left_out: LeftOut) -> None:
    output.note(
        f"Offsets {left_out.first_offset}-{left_out.next_offset - 1} of topic '{topic.name}' "
        f"partition {partition} are left out: {left_out.reason}"
    )


def _avro_pages(log: LogAccess, topic: Topic) -> AvroPages | None:
    """What decodes the topic's records, if they are in Avro."""
    from duolog.cli.avro_pages import AvroPages, is_avro, reader_for

    return AvroPages(topic, reader_for(log)) if is_avro(topic) else None


def _positions(
    log: LogAccess,
    topic: Topic,
    partitions: tuple[int, ...],
    group: str | None,
    start: Start,
    *,
    begins: bool,
) -> dict[int, int]:
    """Where to begin in each partition, the one first that the group has not read for longest.

    `begins`: where the group has no position, it has one from then on.
    """
    positions: dict[int, int] = {}
    known: dict[int, GroupPosition] = {}
    if group is not None and begins:
        known = known_or_first(log, group, topic.id, dict.fromkeys(partitions, start))
    for partition in partitions:
        position = known.get(partition)
        if position is None and group is not None:
            position = log.group_position(group, topic.id, partition)
        if position is None:
            positions[partition] = log.resolve(topic.id, partition, start)
            continue
        known[partition] = position
        offsets = log.offsets(topic.id)[partition]
        positions[partition] = max(position.position, offsets.start)
        if offsets.start > position.position:
            output.note(
                f"Group '{group}' was at {position.position} in partition {partition}; retention "
                f"has removed what was before {offsets.start}, so it begins there."
            )
    first = sorted(positions, key=lambda each: _last_read_ms(known.get(each)))
    return {partition: positions[partition] for partition in first}


def _last_read_ms(position: GroupPosition | None) -> int:
    return 0 if position is None or position.is_first else position.changed_at_ms


def _wait(log: LogAccess, topic: Topic, positions: dict[int, int]) -> None:
    """Wait for a record, or until nobody reads what is printed."""
    beyond = {(topic.id, partition): offset for partition, offset in positions.items()}
    while not log.wait_for_append(beyond, _LOOK_AT_READER_SECONDS):
        if _reader_has_gone():
            raise BrokenPipeError


def _reader_has_gone() -> bool:
    """A pipe tells of it when one writes, but with nothing to print nothing is written."""
    try:
        descriptor = sys.stdout.fileno()
    except OSError:  # not a real file, in a test
        return False
    poll = select.poll()
    poll.register(descriptor, 0)  # errors are always told
    return bool(poll.poll(0))
