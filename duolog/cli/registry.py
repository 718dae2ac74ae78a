"""`duolog registry`"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from duolog import output
from duolog.cli.opening import settings_with_log
from duolog.cli.options import AsJson, LogFolder
from duolog.errors import InvalidSetting

_FORMER_VARIABLE: Final = "DUOLOG_REGISTRY_TOKEN"
_MAKE_TOKENS: Final = (
    "Make one with `duolog token create --role dba --name NAME --file tokens` and give --tokens "
    "tokens."
)


def registry(
    log: LogFolder = None,
    listen: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Address to listen on; port 0 takes a free one.",
            show_default="127.0.0.1:8081",
        ),
    ] = None,
    tokens: Annotated[
        Path | None,
        typer.Option(help="Who may ask: the file that `duolog token create` writes."),
    ] = None,
    as_json: AsJson = False,
    host: Annotated[str | None, typer.Option(hidden=True)] = None,
    port: Annotated[str | None, typer.Option(hidden=True)] = None,
    token_file: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Serve the log's schema registry, as Confluent's clients speak to one.

    It owns the log while it runs. Beyond loopback it wants tokens, which
    clients send as bearer token or as the password of basic auth: `service`
    reads and registers, `dba` also changes and deletes.
    """
    from duolog.server.run import check_installed

    _refuse_former_words(host, port, token_file)
    check_installed(("fastapi", "uvicorn"), "The registry", "registry")
    from duolog.avro.embedded import open_log
    from duolog.bridge.journal import Journal, Level
    from duolog.bridge.serve.registry import serve_registry

    flags = {"serve": {"tokens": tokens}, "registry": {"listen": listen}}
    settings, path = settings_with_log(log, flags=flags)

    def say(url: str, folder: str) -> None:
        if as_json:
            output.json_line({"registry": url, "log": folder})
        else:
            output.note(f"Schema registry of {folder} on {url}. Ctrl-C ends it.")
        output.flush()

    serve_registry(
        lambda: open_log(path, options=settings.log_options()),
        settings.registry_options(),
        Journal(as_json=as_json, level=Level.WARNING),
        when_started=say,
    )


def _refuse_former_words(host: str | None, port: str | None, token_file: str | None) -> None:
    """Say what to write in place of what was taken once."""
    if host is not None or port is not None:
        raise InvalidSetting(
            f"--host and --port are one option now: --listen {host or '127.0.0.1'}:{port or 8081}."
        )
    if token_file is not None:
        raise InvalidSetting(f"--token-file is --tokens now, a file of hashes. {_MAKE_TOKENS}")
    if os.environ.get(_FORMER_VARIABLE):
        raise InvalidSetting(f"{_FORMER_VARIABLE} is not taken any more. {_MAKE_TOKENS}")
