"""`duolog publish`"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from duolog import output
from duolog.cli import completing, shown
from duolog.cli.opening import opened
from duolog.cli.options import AsJson, HostToken, HostUrl, LogFolder, names
from duolog.cli.senders import ToRoutes, ToRoutesOnce, ToTopic
from duolog.cli.sending import Sender, publish_lines
from duolog.log.model import Op, Unrouted

_LINE_BYTES_PER_RECORD_BYTE = 8  # JSON may write a byte as \u0000; the rest is room to spare


def publish(
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="TOPIC",
            help="Left out with --table.",
            show_default=False,
            autocompletion=completing.topics,
        ),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Each line is a value, as it is.")] = False,
    table: Annotated[
        str | None,
        typer.Option(
            metavar="NS.T",
            help="Each line is a row of this table; it goes to all topics with a route for it.",
            show_default=False,
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(metavar="COLS", help="The table's key columns.", show_default=False),
    ] = None,
    op: Annotated[
        str | None,
        typer.Option(
            metavar="OP", help="insert, update or delete.", show_default="insert, with --table"
        ),
    ] = None,
    before: Annotated[
        bool,
        typer.Option(
            "--before", help='Each line is {"before": …, "after": …}: the row as it was, and is.'
        ),
    ] = False,
    unrouted: Annotated[
        str | None,
        typer.Option(
            metavar="fail|drop",
            help="What becomes of rows that no route takes.",
            show_default="fail, with --table",
        ),
    ] = None,
    ts: Annotated[
        int | None,
        typer.Option(
            metavar="MS",
            min=0,
            help="The rows' time. Some payloads carry it: with --writer, give the same again.",
            show_default="now, with --table",
        ),
    ] = None,
    writer: Annotated[
        str | None,
        typer.Option(
            metavar="W",
            help="Count the records under this name: sent again, none is written twice.",
            show_default=False,
        ),
    ] = None,
    sequence: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="The first record's number.", show_default="1"),
    ] = None,
    in_order: Annotated[
        bool,
        typer.Option(
            "--in-order",
            help="With --writer: the first number has to follow the writer's last one.",
        ),
    ] = False,
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """Publish lines of stdin; print where each lies once it is durable.

    A line is a JSON object with "value", and if wanted "key", "headers",
    "partition", "op", "table" and "ts". Text is taken as UTF-8, other JSON
    as its compact text, null as null.

    Lines are published as they come in. A bad line is named and stops: what
    is before it is published and printed, it and what is after it is not.
    """
    del as_json  # places are JSON lines anyway; it decides how errors look
    _check(topic, raw=raw, table=table, key=key, op=op, ts=ts, writer=writer, sequence=sequence)
    if in_order and (writer is None or table is not None):
        raise typer.BadParameter("It goes with a --writer for one TOPIC.", param_hint="--in-order")
    if table is None and (before or unrouted is not None):
        raise typer.BadParameter("--before and --unrouted go with --table.")
    dropped = _unrouted(unrouted)
    if sys.stdin.isatty():
        output.note("Reading records from the terminal, a line each; end with Ctrl-D.")
    with opened(log, url, token) as opened_log:
        max_record_bytes = opened_log.max_record_bytes
        sender: Sender
        if table is None:
            first = 1 if sequence is None else sequence
            found = opened_log.topic(topic or "")
            sender = ToTopic(
                opened_log, found, raw=raw, writer=writer, first=first, in_order=in_order
            )
        elif writer is None:
            sender = ToRoutes(
                opened_log,
                table,
                _op(op),
                names(key),
                ts_ms=ts,
                with_before=before,
                unrouted=dropped,
            )
        else:
            sender = ToRoutesOnce(
                opened_log,
                table,
                _op(op),
                names(key),
                ts_ms=ts,
                with_before=before,
                unrouted=dropped,
                writer=writer,
                max_record_bytes=max_record_bytes,
            )
        counts = publish_lines(sender, _LINE_BYTES_PER_RECORD_BYTE * max_record_bytes)
        passed_over = sender.finish()
    if passed_over:
        output.note(
            f"{shown.things(passed_over, 'record')} from before what the log remembers of this "
            "writer: passed over."
        )
    if table is not None:
        rows = shown.things(counts.lines, "row")
        records = shown.things(counts.records + passed_over, "record")
        output.note(f"{rows} became {records}.")


def _check(
    topic: str | None,
    *,
    raw: bool,
    table: str | None,
    key: str | None,
    op: str | None,
    ts: int | None,
    writer: str | None,
    sequence: int | None,
) -> None:
    """Refuse what does not go together."""
    if (topic is None) == (table is None):
        raise typer.BadParameter("Give a TOPIC, or --table for rows that go by the routes.")
    if table is None and not (key is None and op is None and ts is None):
        raise typer.BadParameter(
            "--key, --op and --ts go with --table. A record says these itself: "
            '{"key": …, "op": …, "value": …}.'
        )
    if table is not None and raw:
        raise typer.BadParameter("--raw lines are values; rows of a table are JSON objects.")
    if table is not None and not names(key):
        raise typer.BadParameter("Rows need their key columns: --key id.", param_hint="--key")
    if sequence is not None and (writer is None or table is not None):
        raise typer.BadParameter(
            "It numbers the records of a --writer for one TOPIC.", param_hint="--sequence"
        )


def _unrouted(word: str | None) -> Unrouted:
    if word not in (None, *Unrouted):
        raise typer.BadParameter(f"'{word}' is none of fail, drop.", param_hint="--unrouted")
    return Unrouted.FAIL if word is None else Unrouted(word)


def _op(word: str | None) -> Op:
    known = {op.word: op for op in Op if op.word}
    if word is not None and word.lower() not in known:
        raise typer.BadParameter(
            f"'{word}' is none of {', '.join(map(str, known))}.", param_hint="--op"
        )
    return known["insert" if word is None else word.lower()]
