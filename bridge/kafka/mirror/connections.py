"""Connections to the brokers of a cluster: aiokafka's, which bring TLS and SASL.

Its client above them is not used: it asks for topics by name in a way that makes brokers create
them, with settings that nobody wanted.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from typing import Any, Final, TypeVar

from aiokafka import errors as kafka_errors

from duolog.bridge.kafka.access import login_refused, untrusted
from duolog.bridge.kafka.mirror.broker_connection import BrokerConnection
from duolog.bridge.kafka.mirror.in_turn import InTurn, Request
from duolog.bridge.kafka.settings import KafkaSettings
from duolog.bridge.kafka.wire.requests import ClusterMetadata, Metadata
from duolog.errors import (
    KafkaLoginRefused,
    KafkaTokenUnavailable,
    KafkaUnreachable,
    KafkaUntrusted,
)

A = TypeVar("A")

_LOGIN_AGAIN_SECONDS: Final = 2.0  # guarded clusters lock out who tries again and again
_CLOSED_WITHIN_SECONDS: Final = 1.0
_CUT_OFF = (OSError, asyncio.TimeoutError)
_ON_THE_WAY = (kafka_errors.KafkaError, *_CUT_OFF)
_NOT_LET_IN = (
    kafka_errors.AuthenticationFailedError,
    kafka_errors.SaslAuthenticationFailed,
    kafka_errors.UnsupportedSaslMechanismError,
    ValueError,  # it does not prove that it knows the password
)
_NO_ENTRY = (KafkaLoginRefused, KafkaTokenUnavailable, KafkaUntrusted)


class Reconnected(Exception):
    """The connection over which a request was to go is no more."""


class Connections:
    """One connection to each broker that is asked, made when it is needed."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._options = settings.for_aiokafka()
        self._servers: list[str] = self._options.pop("bootstrap_servers")
        self._brokers: dict[int, tuple[str, int]] = {}
        self._open: dict[int, Any] = {}
        self._closing: set[asyncio.Future[Any]] = set()
        self._setup_seconds = settings.setup_timeout_seconds
        self._turns: dict[int, InTurn] = {}
        self._one_opens = asyncio.Lock()
        self._refused: tuple[float, KafkaLoginRefused] | None = None

    async def close(self) -> None:
        opened, self._open = list(self._open.values()), {}
        for connection in opened:
            self._let_go(connection)
        closing, self._closing = self._closing, set()
        if closing:
            await asyncio.wait(closing, timeout=_CLOSED_WITHIN_SECONDS)

    def _let_go(self, connection: Any) -> None:
        """Close it; with TLS that takes a moment, for which `close` waits."""
        closed = connection.close()
        if connection._protocol is not None:  # noqa: SLF001 it has been open
            self._closing.add(closed)
            closed.add_done_callback(self._closing.discard)

    async def look(self, topics: tuple[str, ...]) -> ClusterMetadata:
        """The cluster as any broker sees it, asked at its own address or a first one."""
        seen = await self._seen_by_known(topics) or await self._seen_by_first(topics)
        if not seen.brokers:  # what a broker answers that has only just begun, or wants a login
            raise KafkaUnreachable(
                f"Kafka at {', '.join(self._servers)} names no brokers. If that goes on, look at "
                "security.protocol: it may want a login. It is asked again."
            )
        self._brokers = dict(seen.brokers)
        return seen

    async def send_to_any(self, request: Request[A]) -> A:
        """Ask whichever broker."""
        if not self._brokers:
            await self.look(())
        return await self.send(random.choice(list(self._brokers)), request)  # noqa: S311

    async def send(self, node: int, request: Request[A]) -> A:
        """Ask one broker. Requests of one caller go out in the order of the calls."""
        connection = await self.to(node)
        return await self._answer(node, connection, connection.send(request))

    async def send_in_turn(self, node: int, request: Request[A], over: object) -> A:
        """The same for what is large: it waits until those before it are on their way.

        It goes over this connection, as `to` has given it, and over no later one.
        """
        connection: Any = over
        if connection is None or self._open.get(node) != connection or not connection.connected():
            raise Reconnected
        if node not in self._turns or self._turns[node].connection is not connection:
            self._turns[node] = InTurn(connection)
        return await self._answer(node, connection, self._turns[node].send(request))

    async def _answer(self, node: int, connection: Any, asked: Awaitable[A]) -> A:
        try:
            answer = await asked
        except _ON_THE_WAY as error:
            self._let_go(connection)
            raise self._unreachable(self._brokers.get(node), error) from error
        return answer

    async def to(self, node: int) -> Any:
        """The connection to a broker, opened where there is none."""
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
        now = asyncio.get_running_loop().time()
        if self._refused is not None and now - self._refused[0] < _LOGIN_AGAIN_SECONDS:
            raise KafkaLoginRefused(str(self._refused[1]))
        connection = BrokerConnection(host, port, **self._options)
        is_in = False
        try:
            async with asyncio.timeout(self._setup_seconds):
                await connection.connect()
            is_in = True
        except _CUT_OFF as error:  # among them what TLS says, which is a ValueError too
            raise self._unreachable((host, port), error) from error
        except _NOT_LET_IN as error:
            said = str(error.args[0]) if error.args else type(error).__name__
            refused = login_refused(f"{host}:{port}", said)
            self._refused = now, refused
            raise refused from error
        except kafka_errors.KafkaError as error:
            raise self._unreachable((host, port), error) from error
        finally:
            if not is_in:
                self._let_go(connection)
        self._refused = None
        return connection

    async def _seen_by_known(self, topics: tuple[str, ...]) -> ClusterMetadata | None:
        for node in random.sample(list(self._brokers), len(self._brokers)):
            try:
                return await self.send(node, Metadata(topics))
            except (KafkaUnreachable, KafkaLoginRefused):
                continue
        return None

    async def _seen_by_first(self, topics: tuple[str, ...]) -> ClusterMetadata:
        """By one of those that were named at the start."""
        failures = []
        no_entry: KafkaUnreachable | KafkaLoginRefused | None = None
        for server in self._servers:
            host, _, port = server.strip().rpartition(":")
            try:
                connection = await self._connect(host.strip("[]"), int(port))
                try:
                    seen: ClusterMetadata = await connection.send(Metadata(topics))
                    return seen
                finally:
                    self._let_go(connection)
            except _NO_ENTRY as error:
                no_entry = error
            except KafkaUnreachable as error:
                failures.append(str(error.__cause__))
            except _ON_THE_WAY as error:
                failures.append(str(error) or type(error).__name__)
        if no_entry is not None:
            raise no_entry
        raise KafkaUnreachable(
            f"No Kafka broker answers at {', '.join(self._servers)} ({'; '.join(failures)}). Look "
            "at --bootstrap-servers and security.protocol; it is asked again until one does."
        )

    def _unreachable(self, where: tuple[str, int] | None, error: BaseException) -> KafkaUnreachable:
        named = "broker" if where is None else f"broker at {where[0]}:{where[1]}"
        about_tls = untrusted("" if where is None else f"{where[0]}:{where[1]}", error)
        if about_tls is not None:
            return about_tls
        said = str(error) or type(error).__name__
        return KafkaUnreachable(
            f"The Kafka {named} does not answer ({said}). It is asked again until it does."
        )
