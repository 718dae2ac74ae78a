"""`duolog registry`"""

from __future__ import annotations

import importlib.util
import ipaddress
import os
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from duolog.cli import output
from duolog.cli.opening import settings_with_log
from duolog.cli.options import AsJson, LogFolder
from duolog.errors import InvalidSetting

if TYPE_CHECKING:
    from pydantic import SecretStr

TOKEN_VARIABLE = "DUOLOG_REGISTRY_TOKEN"  # noqa: S105 - the variable's name, not a token
DEFAULT_PORT = 8081  # where clients look for a registry
_MIN_TOKEN_LENGTH = 16
_GRACE_SECONDS = 10
_LIBRARIES = ("fastapi", "uvicorn")


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
    for library in _LIBRARIES:
        if importlib.util.find_spec(library) is None:
            raise InvalidSetting(f"The registry needs {library}: pip install 'duolog[registry]'.")
    from duolog.avro.embedded import open_log, registry_of
    from duolog.avro.registry.app import registry_app
    from duolog.avro.registry.guard import TokenGuard

    tokens = _tokens(token_file)
    if not tokens and not _is_loopback(host):
        raise InvalidSetting(
            f"Listening on {host}, beyond this machine, takes a token. Make one with "
            f"`python -c 'import secrets; print(secrets.token_hex(32))' > token` and give "
            "--token-file token."
        )
    settings, path = settings_with_log(log)
    with (
        _listening(host, port) as listener,
        open_log(path, options=settings.log_options()) as opened,
        _server(TokenGuard(registry_app(registry_of(opened)), tokens)) as server,
    ):
        address = "http://{}:{}".format(
            f"[{host}]" if ":" in host else host, listener.getsockname()[1]
        )
        if as_json:
            output.json_line({"registry": address, "log": str(opened.folder)})
        else:
            output.note(f"Schema registry of {opened.folder} on {address}. Ctrl-C ends it.")
        output.flush()
        server.run(sockets=[listener])


@contextmanager
def _server(application: Any) -> Iterator[Any]:
    """A server that SIGINT and SIGTERM end once requests under way are answered.

    From here on, not only while it runs; and uvicorn's own way, to raise the signal again when it
    has stopped, would end the program before the log is closed.
    """
    import uvicorn

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    server = Server(
        uvicorn.Config(
            application,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
    )
    before = {
        number: signal.signal(number, server.handle_exit)
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield server
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise InvalidSetting(
            f"Cannot listen on {host} port {port}: {error.strerror or error}. Choose another with "
            "--port, or --port 0 for a free one."
        ) from error


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


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
