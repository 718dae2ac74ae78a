"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from duolog.cli import completing

LogFolder = Annotated[
    str | None,
    typer.Option(
        "--log",
        metavar="DIR",
        help="The log's directory (or DUOLOG_LOG, or log = … in duolog.toml).",
        show_default=False,
    ),
]
HostUrl = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="URL",
        help="In place of --log: where its host is asked (or DUOLOG_URL).",
        show_default=False,
    ),
]
HostToken = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="T",
        help="With --url: what the host lets in; better as DUOLOG_TOKEN.",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON lines on stdout; errors as JSON too.")]
TopicName = Annotated[
    str,
    typer.Argument(
        metavar="TOPIC",
        help="Its name, alias or id.",
        show_default=False,
        autocompletion=completing.topics,
    ),
]
OnePartition = Annotated[
    int | None,
    typer.Option("--partition", metavar="P", help="This one alone.", show_default=False),
]
Yes = Annotated[
    bool, typer.Option("--yes", "-y", help="Do not ask. (Only asked at a terminal anyway.)")
]


def names(text: str | None) -> tuple[str, ...]:
    """The names in a list with commas."""
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())
