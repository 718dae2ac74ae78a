"""`duolog ack`"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from duolog import output
from duolog.cli import completing
from duolog.cli.opening import opened
from duolog.cli.options import AsJson, HostToken, HostUrl, LogFolder, TopicName
from duolog.errors import NotSettled


class Wait(StrEnum):
    """What to wait for."""

    SETTLED = "settled"


def ack(
    topic: TopicName,
    group: Annotated[
        str,
        typer.Option(metavar="G", show_default=False, autocompletion=completing.groups),
    ],
    upto: Annotated[
        int, typer.Option(metavar="N", help="The last offset that is done.", show_default=False)
    ],
    partition: Annotated[
        int | None,
        typer.Option(
            metavar="P", help="Needed where a topic has more than one.", show_default=False
        ),
    ] = None,
    wait: Annotated[
        Wait | None,
        typer.Option(
            metavar="settled",
            help="settled: until Kafka's offset is there too.",
            show_default=False,
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, max=300, help="How long to wait.")
    ] = 30.0,
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
        settled = None
        if wait is Wait.SETTLED:
            settled = opened_log.settle_group(
                group, position.topic, position.partition, timeout_seconds=timeout
            )
    if as_json:
        output.json_line(
            {
                "topic": position.topic,
                "partition": position.partition,
                "group": group,
                "upto_offset": position.upto_offset,
                "position": position.position,
                **({} if settled is None else {"settled": settled.is_settled}),
            }
        )
    elif settled is None or settled.is_settled:
        output.note(
            f"Group '{group}' goes on at offset {position.position} of topic '{position.topic}' "
            f"partition {position.partition}{' and in Kafka' if settled is not None else ''}."
        )
    if settled is not None and not settled.is_settled:
        raise NotSettled(
            f"Group '{group}' has acknowledged it, but is not there in Kafka yet: "
            f"{settled.pending}. It is done as soon as it can be; ask again to wait on."
        )
