"""The registry that lives in the log, asked through the host: it is there under `/registry`."""

from __future__ import annotations

import json
from typing import Any, Final

from duolog.avro.registry.answers import Answer
from duolog.reach.connection import HostConnection
from duolog.reach.exchange import Request

REGISTRY_PREFIX: Final = "/registry"
_MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"


class RegistryOverHost:
    """A connection as `avro.registry.asking` wants it."""

    def __init__(self, connection: HostConnection) -> None:
        self._connection = connection

    def ask(self, method: str, path: str, asked: str, *, body: Any = None) -> Answer:
        request = Request(
            method,
            f"{REGISTRY_PREFIX}/{path}",
            asked,
            body=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": _MEDIA_TYPE, "Accept": _MEDIA_TYPE},
        )
        answer = self._connection.ask_other(request)
        url = f"{self._connection.endpoint.address}{REGISTRY_PREFIX}"
        return Answer(asked, url, answer.status, answer.content)
