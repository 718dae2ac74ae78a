"""`duolog token`"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from duolog.cli import output
from duolog.cli.options import AsJson, names

app = typer.Typer(no_args_is_help=True, help="Tokens for those who ask a host.")


@app.command()
def create(
    role: Annotated[
        str, typer.Option(metavar="R", help="user, service, dba or system: what it may do.")
    ],
    name: Annotated[str, typer.Option(metavar="N", help="Whose it is; shown in logs.")],
    file: Annotated[Path, typer.Option(metavar="F", help="The host's token file.")],
    topics: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN",
            help="Limit it to topics like orders or orders.*; several with commas.",
            show_default="all",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print a new token, once.

    The file keeps only its hash. A host that uses the file takes the token
    from now on. To take it back, remove its line.
    """
    from duolog.bridge.http.callers import Caller, Role
    from duolog.bridge.http.tokens import add_token

    patterns = None if topics is None else names(topics)
    if patterns == ():
        raise typer.BadParameter("Name at least one topic, or leave it out.", param_hint="--topics")
    token = add_token(file, Caller(name, Role.of(role.lower()), patterns))
    if as_json:
        output.json_line({"name": name, "role": role.lower(), "token": token})
    else:
        output.write(f"{token}\n".encode())
        output.note(f"This is the only time that it is shown. {file} keeps its hash.")
