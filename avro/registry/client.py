"""A registry that is asked over HTTP: Duolog's own, Confluent's, or one that speaks the same."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import httpx

from duolog.avro.registry.asking import AskedRegistry
from duolog.avro.registry.connection import RegistryConnection
from duolog.avro.registry.connection_options import ConnectionOptions


class RegistryClient(AskedRegistry):
    """A registry that options name. Close it at the end."""

    def __init__(
        self, options: ConnectionOptions, *, transport: httpx.BaseTransport | None = None
    ) -> None:
        self._over_http = RegistryConnection(options, transport=transport)
        super().__init__(
            self._over_http,
            capacity=options.cache_capacity,
            latest_seconds=options.latest_cache_seconds,
        )

    def close(self) -> None:
        """Give the connections back. Further calls raise RegistryUnreachable."""
        self._over_http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
