"""`duolog sql`"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from duolog import output
from duolog.cli.opening import opened
from duolog.cli.options import AsJson, HostToken, HostUrl, LogFolder
from duolog.printable import one_line

if TYPE_CHECKING:
    from duolog.avro.reading import ValueReader
    from duolog.log import LogAccess
    from duolog.sql.result import SqlResult

_WIDTH = 80
_SEPARATOR = 3  # between two columns of a table
_MOST_ROWS = 1000


def sql(
    statement: Annotated[
        str | None,
        typer.Argument(metavar="SQL", show_default="read from stdin"),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", metavar="FILE", help="Read from there.", show_default=False),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="S", help="A SELECT may take so many seconds.", show_default="for ever"
        ),
    ] = None,
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """Topics, groups and queries in SQL; semicolons between statements.

    SELECT … FROM a topic, system.topics, system.sources, system.partitions or
    system.topic_offsets; CREATE, ALTER, DROP and CLEAR TOPIC; CONSUME; ACK;
    RESET CONSUMER GROUP. SELECT needs: pip install 'duolog\\[sql]'.

    Nothing is done before all statements are understood. Then they are done
    one after the other, up to the first that fails.
    """
    from duolog.sql import QueryLimits, execute, parse
    from duolog.sql.statements import CreateTopic

    text = _text(statement, file)
    statements = parse(text)
    limits = QueryLimits(timeout_seconds=timeout)
    create = any(isinstance(each, CreateTopic) for each in statements)
    with opened(log, url, token, create=create) as opened_log:
        for number, each in enumerate(statements):
            if number and not as_json:
                output.blank()
            reader = _reader(opened_log)
            result = execute(opened_log, each, text, reader=reader, limits=limits)
            try:
                _print_json(result) if as_json else _print(result)
            finally:
                result.close()


def _text(statement: str | None, file: Path | None) -> str:
    if statement is not None and file is not None:
        raise typer.BadParameter("Give SQL or --file, not both.")
    if statement is not None and statement != "-":
        return statement
    try:
        if file is not None:
            return file.read_bytes().decode()
        if sys.stdin.isatty():
            output.note("Reading SQL from the terminal; end with Ctrl-D.")
        return sys.stdin.buffer.read().decode()
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise typer.BadParameter(f"{file or 'stdin'} is not UTF-8.") from error


def _reader(log: LogAccess) -> ValueReader | None:
    """What decodes topics in Avro, if there are any."""
    from duolog.cli.avro_pages import is_avro, reader_for

    return reader_for(log) if any(is_avro(topic) for topic in log.topics()) else None


def _print_json(result: SqlResult) -> None:
    """All rows, a JSON object each, as they are made."""
    from duolog.sql.cells import fields, rows_of

    for batch in result.batches():
        for row in rows_of(batch):
            output.json_line(fields(result.columns, row))
        output.flush()


def _print(result: SqlResult) -> None:
    """A table, or where that is too wide the columns below one another."""
    from duolog.cli.sql_cells import is_number, shown
    from duolog.sql.cells import rows_of

    rows: list[list[str]] = []
    for batch in result.batches():
        rows += [[shown(cell) for cell in row] for row in rows_of(batch)]
        if len(rows) > _MOST_ROWS:
            break
    names = [one_line(name) for name in result.columns]
    cells = [names, *rows[:_MOST_ROWS]]
    widths = [max(len(row[at]) for row in cells) for at in range(len(names))]
    if sum(widths) + _SEPARATOR * (len(widths) - 1) <= _width():
        numbers = [is_number(kind) for kind in result.schema.types]
        output.table(
            [
                f"{output.RIGHT}{name}" if right else name
                for name, right in zip(names, numbers, strict=True)
            ],
            cells[1:],
        )
    else:
        for number, row in enumerate(cells[1:]):
            if number:
                output.blank()
            output.fields(zip(names, row, strict=True))
    if len(rows) > _MOST_ROWS:
        output.note(
            f"These are the first {_MOST_ROWS:,} rows. For others add LIMIT and OFFSET, for all "
            "take --json."
        )


def _width() -> int:
    return shutil.get_terminal_size((_WIDTH, 24)).columns if sys.stdout.isatty() else _WIDTH
