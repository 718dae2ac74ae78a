"""Connections to the brokers of a cluster: aiokafka's, which bring TLS and SASL.

Its client above them is not used: it asks for topics by name in a way that makes brokers create
them, with settings that nobody wanted.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any, Final, Protocol, TypeVar

from aiokafka import errors as kafka_errors
from aiokafka.conn import create_conn

from duolog.bridge.kafka.settings import KafkaSettings
from duolog.bridge.kafka.wire.requests import ClusterMetadata, Metadata, Prepared, Versions
from duolog.errors import KafkaRefused, KafkaUnreachable

A = TypeVar("A")

NOT_LET_IN: Final = 58  # Kafka's number for it
_ON_THE_WAY = (kafka_errors.KafkaError, OSError, asyncio.TimeoutError)
_NOT_LET_IN = (
    kafka_errors.AuthenticationFailedError,
    kafka_errors.SaslAuthenticationFailed,
    kafka_errors.UnsupportedSaslMechanismError,
)


class Request(Protocol[A]):
    """One of `wire/requests.py`."""

    def prepare(self, versions: Versions) -> Prepared[A]: ...


class Connections:
    """One connection to each broker that is asked, made when it is needed."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._options = settings.for_aiokafka()
        self._servers: list[str] = self._options.pop("bootstrap_servers")
        self._brokers: dict[int, tuple[str, int]] = {}
        self._open: dict[int, Any] = {}
        self._one_opens = asyncio.Lock()

    async def close(self) -> None:
        opened, self._open = list(self._open.values()), {}
        for connection in opened:
            connection.close()

    async def look(self, topics: tuple[str, ...]) -> ClusterMetadata:
        """The cluster as any broker sees it, asked at its own address or a first one."""
        seen = await self._seen_by_known(topics) or await self._seen_by_first(topics)
        self._brokers = dict(seen.brokers)
        return seen

    async def send_to_any(self, request: Request[A]) -> A:
        """Ask whichever broker."""
        if not self._brokers:
            await self.look(())
        return await self.send(random.choice(list(self._brokers)), request)  # noqa: S311

    async def send(self, node: int, request: Request[A]) -> A:
        """Ask one broker. Requests of one caller go out in the order of the calls."""
        connection = await self._to(node)
        try:
            answer: A = await connection.send(request)
        except _ON_THE_WAY as error:
            connection.close()
            raise self._unreachable(self._brokers.get(node), error) from error
        return answer

    async def _to(self, node: int) -> Any:
        connection = self._open.get(node)
        if connection is not None and connection.connected():
            return connection
        async with self._one_opens:
            connection = self._open.get(node)
            if connection is None or not connection.connected():
                if node not in self._brokers:
                    raise KafkaUnreachable(f"The cluster has no broker {node} any more.")
                connection = self._open[node] = await self._connect(*self._brokers[node])
        return connection

    async def _connect(self, host: str, port: int) -> Any:
        try:
            return await create_conn(host, port, **self._options)
        except _NOT_LET_IN as error:
            raise KafkaRefused(
                f"The Kafka broker at {host}:{port} does not let the mirror in: {error}. Look at "
                "security.protocol, sasl.mechanism, sasl.username and sasl.password.",
                error=NOT_LET_IN,
            ) from error
        except _ON_THE_WAY as error:
            raise self._unreachable((host, port), error) from error

    async def _seen_by_known(self, topics: tuple[str, ...]) -> ClusterMetadata | None:
        for node in random.sample(list(self._brokers), len(self._brokers)):
            try:
                return await self.send(node, Metadata(topics))
            except KafkaUnreachable:
                continue
        return None

    async def _seen_by_first(self, topics: tuple[str, ...]) -> ClusterMetadata:
        """By one of those that were named at the start."""
        failures = []
        for server in self._servers:
            host, _, port = server.strip().rpartition(":")
            try:
                connection = await self._connect(host.strip("[]"), int(port))
                try:
                    seen: ClusterMetadata = await connection.send(Metadata(topics))
                    return seen
                finally:
                    connection.close()
            except KafkaUnreachable as error:
                failures.append(str(error.__cause__))
            except _ON_THE_WAY as error:
                failures.append(str(error) or type(error).__name__)
        raise KafkaUnreachable(
            f"No Kafka broker answers at {', '.join(self._servers)} ({'; '.join(failures)}). Look "
            "at --bootstrap-servers and security.protocol; it is asked again until one does."
        )

    def _unreachable(self, where: tuple[str, int] | None, error: BaseException) -> KafkaUnreachable:
        named = "broker" if where is None else f"broker at {where[0]}:{where[1]}"
        said = str(error) or type(error).__name__
        return KafkaUnreachable(
            f"The Kafka {named} does not answer ({said}). It is asked again until it does."
        )
