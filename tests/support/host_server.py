"""Real hosts for tests: the internal routes and the registry, by uvicorn on a loopback port.

As a module it is a child process that hosts a log and can be told where to die.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Self

import uvicorn
from fastapi import FastAPI
from pydantic import SecretStr

import duolog
from duolog.avro.embedded import registry_of
from duolog.avro.registry.rest import registry_router
from duolog.bridge.internal import internal_router
from duolog.bridge.local_callers import LocalCallers
from duolog.log.embedded import EmbeddedLog
from duolog.log.options import LogOptions
from duolog.server.authorization import token_in
from tests.support.registry_server import Certificate
from tests.support.token_guard import TokenGuard

TOKEN = "a-token-for-tests"
_STOP_SECONDS = 30


def host_app(log: EmbeddedLog, *, token: str = TOKEN, **served: Any) -> Any:
    """What a host serves for Duolog itself, to those of this machine and those with this token."""
    local = LocalCallers(log.log_id, log.secret())
    app = FastAPI(openapi_url=None)
    app.include_router(
        internal_router(
            log,
            local=local,
            admits=lambda brought, _: "for tests" if brought == token else None,
            **served,
        )
    )

    @cache
    def registry() -> Any:
        """Made when it is asked for: its many routes take longer than most tests."""
        registry = FastAPI(openapi_url=None)
        registry.include_router(registry_router(registry_of(log)), prefix="/registry")
        return registry

    async def entry(scope: Any, receive: Any, send: Any) -> None:
        to: Any = app
        if scope["path"].startswith("/registry"):
            is_local = local.knows(token_in(scope["headers"]) or "")
            to = registry() if is_local else TokenGuard(registry(), [SecretStr(token)])
        await to(scope, receive, send)

    return entry


class Server:
    """An application on a loopback port, in a thread of its own."""

    def __init__(self, application: Any, *, port: int = 0, tls: Certificate | None = None) -> None:
        self._scheme = "http" if tls is None else "https"
        self._listening = socket.create_server(("127.0.0.1", port))
        # Accepted connections inherit it. asyncio sets it only on sockets that were made with the
        # protocol's number, and without it every answer waits 40 ms for an acknowledgement.
        self._listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.port: int = self._listening.getsockname()[1]
        self._server = uvicorn.Server(
            uvicorn.Config(
                application,
                log_config=None,
                lifespan="off",
                interface="asgi3",
                ws="none",
                timeout_graceful_shutdown=1,
                timeout_keep_alive=60,
                ssl_certfile=None if tls is None else str(tls.certificate),
                ssl_keyfile=None if tls is None else str(tls.key),
            )
        )
        self._thread = threading.Thread(
            target=self._server.run, args=([self._listening],), name=f"host-{self.port}"
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(_STOP_SECONDS)
        self._listening.close()
        assert not self._thread.is_alive(), f"the server on port {self.port} did not stop"


class Host:
    """A log with its host, in this process."""

    def __init__(
        self,
        folder: Path,
        *,
        options: LogOptions | None = None,
        port: int = 0,
        tls: Certificate | None = None,
        wrap: Callable[[Any], Any] = lambda app: app,
        **served: Any,
    ) -> None:
        self.log = duolog.open_log(folder, options=options)
        try:
            self._server = Server(wrap(host_app(self.log, **served)), port=port, tls=tls)
        except BaseException:
            self.log.close()
            raise
        self.log.announce(self.url)

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def port(self) -> int:
        return self._server.port

    def stop(self) -> None:
        self._server.stop()
        self.log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


class ManyHosts:
    """One server for many hosts, each under a path of its own: starting one costs nothing."""

    def __init__(self) -> None:
        self._applications: dict[str, Any] = {}
        self._count = 0
        self._server = Server(self._serve)

    def add(self, application: Any) -> str:
        """Serve it; its url."""
        self._count += 1
        self._applications[f"/host{self._count}"] = application
        return f"{self._server.url}/host{self._count}"

    def remove(self, url: str) -> None:
        """Answer for it no more; it is as if it were being restarted."""
        self._applications.pop(url.removeprefix(self._server.url))

    def stop(self) -> None:
        self._server.stop()

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        prefix = "/" + scope["path"].split("/")[1]
        application = self._applications.get(prefix)
        if application is None:
            await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b""})
            return
        inner = {
            **scope,
            "path": scope["path"].removeprefix(prefix),
            "raw_path": scope["raw_path"].removeprefix(prefix.encode()),
        }
        await application(inner, receive, send)


def _dying_in_uploads(application: Any, after_bytes: int) -> Any:
    """Kill this process when so much of an upload has come."""

    async def serve(scope: Any, receive: Any, send: Any) -> None:
        received = 0

        async def counted() -> Any:
            nonlocal received
            message = await receive()
            if scope["method"] == "PUT":
                received += len(message.get("body", b""))
                if received >= after_bytes:
                    os.kill(os.getpid(), signal.SIGKILL)
            return message

        await application(scope, counted, send)

    return serve


def main(arguments: dict[str, Any]) -> None:
    """Host a log until stdin says something, or this process is killed."""

    def fault(point: str) -> None:
        if point == arguments.get("die_at"):
            os.kill(os.getpid(), signal.SIGKILL)

    upload_bytes = arguments.get("die_in_upload_after_bytes")
    host = Host(
        Path(arguments["folder"]),
        options=LogOptions(fault=fault),
        port=arguments.get("port", 0),
        wrap=lambda app: app if upload_bytes is None else _dying_in_uploads(app, upload_bytes),
    )
    print(json.dumps({"port": host.port}), flush=True)
    sys.stdin.readline()
    host.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
