"""`duolog writer`"""

from __future__ import annotations

from typing import Annotated

import typer

from duolog import output
from duolog.cli.opening import opened
from duolog.cli.options import AsJson, HostToken, HostUrl, LogFolder

app = typer.Typer(no_args_is_help=True, help="Those who publish with sequences.")


@app.command("last-sequence")
def last_sequence(
    writer: Annotated[str, typer.Argument(metavar="WRITER", show_default=False)],
    log: LogFolder = None,
    url: HostUrl = None,
    token: HostToken = None,
    as_json: AsJson = False,
) -> None:
    """Print the highest sequence that a writer has published.

    Nothing is printed for a writer that the log does not know: one that never
    published, or not for so long that it was forgotten.
    """
    with opened(log, url, token) as opened_log:
        last = opened_log.last_sequence(writer)
    if as_json:
        output.json_line({"writer": writer, "last_sequence": last})
    elif last is None:
        output.note(f"The log does not know writer '{writer}'.")
    else:
        output.line(str(last))
