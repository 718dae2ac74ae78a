"""`duolog registry`"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from duolog.cli import output
from duolog.cli.opening import settings_with_log
from duolog.cli.options import AsJson, LogFolder
from duolog.errors import InvalidSetting
from duolog.server.address import Address

if TYPE_CHECKING:
    from pydantic import SecretStr

TOKEN_VARIABLE = "DUOLOG_REGISTRY_TOKEN"  # noqa: S105 - the variable's name, not a token
DEFAULT_PORT = 8081  # where clients look for a registry
_MIN_TOKEN_LENGTH = 16


def registry(
    log: LogFolder = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")
    ] = DEFAULT_PORT,
    token_file: Annotated[
        Path | None,
        typer.Option(help=f"File with one token a line; else {TOKEN_VARIABLE}."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Serve the log's schema registry, as Confluent's clients speak to one.

    It owns the log while it runs. Beyond loopback it wants tokens, which
    clients send as bearer token or as the password of basic auth.
    """
    from duolog.server.listener import listen, taken
    from duolog.server.run import check_installed, stoppable_server

    check_installed(("fastapi", "uvicorn"), "The registry", "registry")
    from duolog.avro.embedded import open_log, registry_of
    from duolog.avro.registry.app import registry_app
    from duolog.avro.registry.guard import TokenGuard

    address = Address(host, port)
    tokens = _tokens(token_file)
    if not tokens and not address.is_loopback:
        raise InvalidSetting(
            f"Listening on {host}, beyond this machine, takes a token. Make one with "
            f"`python -c 'import secrets; print(secrets.token_hex(32))' > token` and give "
            "--token-file token."
        )
    settings, path = settings_with_log(log)
    with (
        listen(address) as listener,
        open_log(path, options=settings.log_options()) as opened,
        stoppable_server(TokenGuard(registry_app(registry_of(opened)), tokens)) as server,
    ):
        url = taken(listener).url()
        if as_json:
            output.json_line({"registry": url, "log": str(opened.folder)})
        else:
            output.note(f"Schema registry of {opened.folder} on {url}. Ctrl-C ends it.")
        output.flush()
        server.run(sockets=[listener])


def _tokens(file: Path | None) -> list[SecretStr]:
    from pydantic import SecretStr

    if file is None:
        found = [os.environ.get(TOKEN_VARIABLE, "").strip()]
        source = TOKEN_VARIABLE
    else:
        try:
            found = [line.strip() for line in file.read_text().splitlines()]
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidSetting(f"The token file {file} cannot be read: {error}.") from error
        source = str(file)
        if not any(found):
            raise InvalidSetting(f"The token file {file} holds no token.")
    tokens = [token for token in found if token]
    if any(len(token) < _MIN_TOKEN_LENGTH for token in tokens):
        raise InvalidSetting(
            f"A token in {source} is shorter than {_MIN_TOKEN_LENGTH} characters: too easy to "
            "guess. Make a longer one."
        )
    return [SecretStr(token) for token in tokens]
