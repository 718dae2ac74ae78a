"""`duolog topic add-source` and `drop-source`: which changes of which tables come to a topic."""

from __future__ import annotations

from typing import Annotated

import typer

from duolog.cli import topic_view
from duolog.cli.opening import opened
from duolog.cli.options import AsJson, HostToken, HostUrl, LogFolder, TopicName, names
from duolog.log.model import Op, PayloadMode, Route

Table = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="As its changes name it: ns.table.", show_default=False),
]


def add_source(
    topic: TopicName,
    table: Table,
    on: Annotated[
        str, typer.Option(metavar="OPS", help="insert,update,delete or some.", show_default=False)
    ],
    where: Annotated[
        str | None,
        typer.Option(
            metavar="EXPR", help="Only rows for which this SQL is true.", show_default=False
        ),
    ] = None,
    payload: Annotated[
        str, typer.Option(metavar="full|key|diff", help="What of a row is written.")
    ] = "full",
    partition_by: Annotated[
        str | None,
        typer.Option(
            metavar="EXPRS",
            help="Columns or expressions that choose the partition: a,lower(b).",
            show_default="the key columns",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="COLS",
            help="Only these columns are written, with those of the key.",
            show_default="all",
        ),
    ] = None,
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """Route a table's changes to a topic."""
    from duolog.log.routing.filter.parse import parse_filter, parse_partition_by

    route = Route(
        table=table,
        ops=_ops(on),
        filter=None if where is None else parse_filter(where),
        payload=_payload(payload),
        partition_by=() if partition_by is None else parse_partition_by(partition_by),
        columns=None if columns is None else names(columns),
    )
    with opened(log, url, token) as opened_log:
        topic_view.show(opened_log, opened_log.add_route(topic, route), as_json=as_json)


def drop_source(
    topic: TopicName,
    table: Table,
    on: Annotated[
        str | None,
        typer.Option(metavar="OPS", help="Only these operations.", show_default="all"),
    ] = None,
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """Stop routing a table's changes to a topic."""
    ops = None if on is None else _ops(on)
    with opened(log, url, token) as opened_log:
        topic_view.show(opened_log, opened_log.drop_route(topic, table, ops), as_json=as_json)


def _ops(text: str) -> frozenset[Op]:
    known = {op.name.lower(): op for op in (Op.INSERT, Op.UPDATE, Op.DELETE)}
    wanted = [name.lower() for name in names(text)]
    if not wanted or not set(wanted) <= known.keys():
        raise typer.BadParameter(
            f"'{text}' is not a list of operations. Give insert, update, delete, or some of them "
            "with commas between.",
            param_hint="--on",
        )
    return frozenset(known[name] for name in wanted)


def _payload(text: str) -> PayloadMode:
    try:
        mode = PayloadMode[text.upper()]
    except KeyError:
        mode = PayloadMode.NONE
    if mode is PayloadMode.NONE:
        raise typer.BadParameter(f"'{text}' is none of full, key and diff.", param_hint="--payload")
    return mode
