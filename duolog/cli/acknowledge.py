"""`duolog ack`"""

from __future__ import annotations

from typing import Annotated

import typer

from duolog.cli import output
from duolog.cli.opening import opened
from duolog.cli.options import AsJson, HostToken, HostUrl, LogFolder, TopicName


def ack(
    topic: TopicName,
    group: Annotated[str, typer.Option(metavar="G", show_default=False)],
    upto: Annotated[
        int, typer.Option(metavar="N", help="The last offset that is done.", show_default=False)
    ],
    partition: Annotated[
        int | None,
        typer.Option(
            metavar="P", help="Needed where a topic has more than one.", show_default=False
        ),
    ] = None,
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """Say that a group has done all up to and including an offset.

    This never moves a group back: acknowledging less than before changes
    nothing. To move it back, use `duolog group seek`.
    """
    with opened(log, url, token) as opened_log:
        position = opened_log.ack(group, topic, upto, partition)
    if as_json:
        output.json_line(
            {
                "topic": position.topic,
                "partition": position.partition,
                "group": group,
                "upto_offset": position.upto_offset,
                "position": position.position,
            }
        )
    else:
        output.note(
            f"Group '{group}' goes on at offset {position.position} of topic '{position.topic}' "
            f"partition {position.partition}."
        )
